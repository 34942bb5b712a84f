// Package open stores the total of each order next to the mark of the inbox, so that events count once.
package open

import (
	"context"
	"encoding/json"
	"errors"
	"feedbox"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"example.com/orders/order"
)

// Name of the consumer and of its subscription.
const Name = "open-orders"

// Total is the stored total of an order.
type Total struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Open         bool   `json:"open"`
	Pieces       int64  `json:"pieces"` // ever added
	Events       int64  `json:"events"` // counted events
}

// Totals stores totals in a container.
type Totals struct {
	*feedbox.Inbox
	container *azcosmos.ContainerClient
}

// New returns the totals in container.
func New(container *azcosmos.ContainerClient) (*Totals, error) {
	inbox, err := feedbox.NewInbox(container, Name)
	return &Totals{inbox, container}, err
}

// Handler returns a handler that counts events with count, such as Totals.Count.
func Handler(count func(ctx context.Context, e *feedbox.Event, change func(t *Total)) error) (feedbox.Handler, error) {
	m := feedbox.NewMux()
	feedbox.OnPayload(m, func(ctx context.Context, e *feedbox.Event, _ order.Placed) error {
		return count(ctx, e, func(t *Total) { t.Open = true })
	})
	feedbox.OnPayload(m, func(ctx context.Context, e *feedbox.Event, added order.LineAdded) error {
		return count(ctx, e, func(t *Total) { t.Pieces += added.Line.Pieces })
	})
	m.Otherwise(func(ctx context.Context, e *feedbox.Event) error { // shipped or cancelled
		return count(ctx, e, func(t *Total) { t.Open = false })
	})
	return m.Handler()
}

// Count stores the total after e, in one transaction with the mark of e.
func (c *Totals) Count(ctx context.Context, e *feedbox.Event, change func(t *Total)) error {
	t := Total{ID: Name + "-total", PartitionKey: e.Key}
	stored, err := c.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(e.Key), t.ID, nil)
	if err == nil {
		err = json.Unmarshal(stored.Value, &t)
	}
	failed, _ := errors.AsType[*azcore.ResponseError](err)
	first := failed != nil && failed.StatusCode == http.StatusNotFound
	if err != nil && !first {
		return err // the event is redelivered
	}
	change(&t)
	t.Events++
	batch, err := c.Batch(ctx, e)
	if err != nil {
		return err
	}
	body, _ := json.Marshal(t) // texts and numbers
	if first {
		batch.CreateItem(body, nil)
	} else { // refused if the total has changed since the read
		batch.ReplaceItem(t.ID, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stored.ETag})
	}
	return batch.Execute(ctx)
}
