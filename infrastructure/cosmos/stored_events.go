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

// StoredEvents returns the events of one partition key that have not expired, in the
// order of their sequence numbers. Message.Index is their place as they were read.
//
// Faults: Invalid (code "unsendable") for an event that is not one, Throttled,
// Unavailable.
func (e EventDecoder) StoredEvents(ctx context.Context, container *azcosmos.ContainerClient, partitionKey string) ([]StoredEvent, error) {
	contract := e.contractOrDefault()
	var events []StoredEvent
	pager := container.NewQueryItemsPager(`SELECT * FROM c WHERE ARRAY_CONTAINS(@types, c["`+contract.Type+`"])`, keyValue(partitionKey),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@types", Value: contract.Types}}})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, store.AsFault("read the events of key "+partitionKey, err)
		}
		for _, raw := range page.Items {
			stored, isEvent, err := e.storedEvent(raw)
			if err != nil {
				return nil, err
			}
			if isEvent {
				stored.Index = len(events)
				events = append(events, stored)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

func (e EventDecoder) storedEvent(raw []byte) (stored StoredEvent, isEvent bool, err error) {
	if stored.Message, isEvent, err = e.Decode(raw); err != nil {
		return stored, false, fault.Wrap(fault.Invalid, "unsendable", "an event of the key cannot be sent as it is", err)
	}
	s := jsontext.NewScanner(raw)
	err = s.Object(func(member string) error {
		if member != "_ts" {
			return s.Skip()
		}
		seconds, err := s.RequireInteger()
		stored.StoredAt = time.Unix(seconds, 0)
		return err
	})
	if err != nil {
		return stored, false, fmt.Errorf("event %s: %w", stored.ID, err)
	}
	return stored, isEvent, nil
}
