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
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/internal/jsontext"
)

// OfKey returns the stored events of a partition key in the order of their sequence numbers.
// Message.Index is the order in which they were read.
//
// Faults: Invalid (code "unsendable") for a malformed event, Throttled, Unavailable.
func (s EventStore) OfKey(ctx context.Context, partitionKey string) ([]relay.StoredEvent, error) {
	member, types := s.decoder.Types()
	var events []relay.StoredEvent
	pager := s.container.NewQueryItemsPager(`SELECT * FROM c WHERE ARRAY_CONTAINS(@types, c["`+member+`"])`, keyValue(partitionKey),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@types", Value: types}}})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, store.AsFault("read the events of key "+partitionKey, err)
		}
		for _, raw := range page.Items {
			stored, isEvent, err := s.storedEvent(raw)
			if err != nil {
				return nil, err
			}
			if isEvent {
				stored.Index = len(events)
				events = append(events, stored)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b relay.StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

func (s EventStore) storedEvent(raw []byte) (stored relay.StoredEvent, isEvent bool, err error) {
	if stored.Message, isEvent, err = s.decoder.Decode(raw); err != nil {
		return stored, false, fault.Wrap(fault.Invalid, "unsendable", "an event of the key is malformed and cannot be sent", err)
	}
	scan := jsontext.NewScanner(raw)
	err = scan.Object(func(member string) error {
		if member != "_ts" {
			return scan.Skip()
		}
		seconds, err := scan.RequireInteger()
		stored.StoredAt = time.Unix(seconds, 0)
		return err
	})
	if err != nil {
		return stored, false, fmt.Errorf("event %s: %w", stored.ID, err)
	}
	return stored, isEvent, nil
}
