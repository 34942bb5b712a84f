package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// createContacts stores contacts as the API does, without their events.
func (w *world) createContacts(ctx context.Context, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for range count {
		id := uuid.New()
		w.ids = append(w.ids, id)
		group.Go(func() error {
			c := bareContact{
				ID: id.String(), Name: bareName{FirstName: "Jane", LastName: "Doe"},
				Description: "A contact of the benchmark, with a description of usual length.", Email: "jane@contoso.example",
				Company: bareCompany{CompanyName: "Contoso"}, CreatedAt: time.Now(), Version: 1, Sequence: 1,
			}
			body, err := json.Marshal(bareDocument{ID: c.ID, PartitionKey: c.ID, Type: "contact", Data: c, TTL: -1})
			if err != nil {
				return err
			}
			_, err = w.container.CreateItem(ctx, azcosmos.NewPartitionKeyString(c.ID), body, nil)
			return err
		})
	}
	return group.Wait()
}

// verify checks the store: each update must have incremented a version and a sequence, and
// the last event must exist.
func (w *world) verify(ctx context.Context) error {
	var versions int64
	for _, id := range w.ids {
		key := azcosmos.NewPartitionKeyString(id.String())
		reply, err := w.container.ReadItem(ctx, key, id.String(), nil)
		if err != nil {
			return err
		}
		var c bareContact
		if err := json.Unmarshal(reply.Value, &bareDocument{Data: &c}); err != nil {
			return err
		}
		if c.Version != c.Sequence {
			return fmt.Errorf("contact %s has version %d and sequence %d", id, c.Version, c.Sequence)
		}
		events, err := w.countEvents(ctx, key)
		if err != nil {
			return err
		}
		if events != c.Version-1 {
			return fmt.Errorf("contact %s has version %d and %d events", id, c.Version, events)
		}
		versions += c.Version - 1
	}
	if updates := w.updates.Load(); versions != updates {
		return fmt.Errorf("%d updates were answered, %d are stored", updates, versions)
	}
	return nil
}

func (w *world) countEvents(ctx context.Context, key azcosmos.PartitionKey) (int64, error) {
	pager := w.container.NewQueryItemsPager("SELECT VALUE COUNT(1) FROM c WHERE c.type = 'domainEvent'", key, nil)
	var count int64
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		for _, item := range page.Items {
			n, err := strconv.ParseInt(string(item), 10, 64)
			if err != nil {
				return 0, err
			}
			count += n
		}
	}
	return count, nil
}
