package cosmos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos/internal/jsontext"
	"feedbox/infrastructure/cosmos/internal/store"
)

// StoredEvent is an event that is still in the container.
type StoredEvent struct {
	relay.Message
	// StoredAt is when the store took it, in whole seconds.
	StoredAt time.Time
}

const storedEventsQuery = "SELECT * FROM c WHERE c.type = '" + typeDomainEvent + "'"

// StoredEvents returns the events of one partition key that have not expired, in the
// order of their sequence numbers. Message.Index is their place as they were read.
//
// Faults: Invalid (code "unsendable") for an event that is not one, Throttled,
// Unavailable.
func StoredEvents(ctx context.Context, container *azcosmos.ContainerClient, partitionKey string) ([]StoredEvent, error) {
	var events []StoredEvent
	pager := container.NewQueryItemsPager(storedEventsQuery, keyValue(partitionKey), nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, store.AsFault("read the events of key "+partitionKey, err)
		}
		for _, raw := range page.Items {
			e, isEvent, err := storedEvent(raw)
			if err != nil {
				return nil, err
			}
			if isEvent {
				e.Index = len(events)
				events = append(events, e)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

func storedEvent(raw []byte) (e StoredEvent, isEvent bool, err error) {
	if e.Message, isEvent, err = (EventDecoder{}).Decode(raw); err != nil {
		return e, false, fault.Wrap(fault.Invalid, "unsendable", "an event of the key cannot be sent as it is", err)
	}
	s := jsontext.NewScanner(raw)
	err = s.Object(func(member string) error {
		if member != "_ts" {
			return s.Skip()
		}
		seconds, err := s.RequireInteger()
		e.StoredAt = time.Unix(seconds, 0)
		return err
	})
	if err != nil {
		return e, false, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return e, isEvent, nil
}
