package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/internal/jsontext"
)

// OfKey returns the stored events of a partition key in the order of their sequence numbers.
// Message.Index is the order in which they were read.
//
// Faults: Invalid (code "unsendable") for a malformed event, Throttled, Unavailable.
func (s EventStore) OfKey(ctx context.Context, partitionKey string) ([]relay.StoredEvent, error) {
	found, err := s.ofPartition(ctx, "read the events of key "+partitionKey, partitionKey, "")
	if err != nil {
		return nil, err
	}
	var events []relay.StoredEvent
	for _, raw := range found {
		stored, isEvent, err := s.storedEvent(raw)
		if err != nil {
			return nil, err
		}
		if isEvent {
			stored.Index = len(events)
			events = append(events, stored)
		}
	}
	slices.SortStableFunc(events, func(a, b relay.StoredEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

// Recent implements relay.Lister. The gateway serves no ORDER BY across partitions, so the listing reads
// period by period, with the index of _ts that every container has; see relay.Windows. A period costs
// one request to each physical partition, of about 3 RU, and the documents read: about 1 RU for each
// 10 of 1 KB. The first page reads up to 10 periods, a later one 1 or 2; a page never reads more than
// 32, and reads at most 8 times its events in vain. An event by its id costs one request to each
// physical partition.
//
// A document that is replaced during a listing has a new time and may be on no page.
func (s EventStore) Recent(ctx context.Context, q relay.RecentQuery) (page relay.RecentPage, err error) {
	if member := s.decoder.IDMember(); q.ID != "" && member == "id" { // no other member needs an index
		page.Events, _, err = s.between(ctx, ` AND c.id = @id`, q.Limit, "", azcosmos.QueryParameter{Name: "@id", Value: q.ID})
		return page, err
	}
	return relay.Windows{Least: time.Second, Between: func(ctx context.Context, from, until time.Time, most int, after string) ([]relay.RecentEvent, string, error) {
		return s.between(ctx, ` AND c._ts >= @from AND c._ts < @until`, most, after,
			azcosmos.QueryParameter{Name: "@from", Value: from.Unix()}, azcosmos.QueryParameter{Name: "@until", Value: until.Unix()})
	}}.Recent(ctx, time.Now(), q)
}

// between returns at most about most events that fulfil a condition, and the store's continuation.
func (s EventStore) between(ctx context.Context, condition string, most int, after string, parameters ...azcosmos.QueryParameter) (found []relay.RecentEvent, next string, err error) {
	member, types := s.decoder.Types()
	next = after
	for first := true; first || next != "" && len(found) < most; first = false {
		options := &azcosmos.QueryOptions{PageSizeHint: int32(most), QueryParameters: append(parameters, azcosmos.QueryParameter{Name: "@types", Value: types})} //nolint:gosec // a page of a listing
		if next != "" {
			options.ContinuationToken = &next
		}
		reply, err := s.container.NewQueryItemsPager(`SELECT * FROM c WHERE ARRAY_CONTAINS(@types, c["`+member+`"])`+condition, azcosmos.NewPartitionKey(), options).NextPage(ctx)
		switch {
		case forbidden(err):
			return nil, "", fault.Wrap(fault.Conflict, "forbidden",
				"this process may not query events: give its identity the role Cosmos DB Built-in Data Reader on the container. A relay needs only its feed", err)
		case err != nil:
			return nil, "", pageFault("list the latest events", err, next)
		}
		for _, raw := range reply.Items {
			found = append(found, s.listed(raw))
		}
		if next = ""; reply.ContinuationToken != nil {
			next = *reply.ContinuationToken
		}
	}
	return found, next, nil
}

// listed decodes an event for a list, which shows a malformed one, too.
func (s EventStore) listed(raw []byte) (e relay.RecentEvent) {
	stored, isEvent, err := s.storedEvent(raw)
	e.StoredEvent = stored
	switch {
	case err != nil:
		e.Trouble = cmp.Or(errors.Unwrap(err), err).Error()
	case !isEvent:
		e.Trouble = "the document is no event: its type is another"
	}
	return e
}

func (s EventStore) storedEvent(raw []byte) (stored relay.StoredEvent, isEvent bool, err error) {
	var wrong error
	stored.Message, isEvent, wrong = s.decoder.Decode(raw)
	scan := jsontext.NewScanner(raw)
	err = scan.Object(func(member string) error {
		if member != "_ts" {
			return scan.Skip()
		}
		seconds, err := scan.RequireInteger()
		stored.StoredAt = time.Unix(seconds, 0)
		return err
	})
	switch {
	case wrong != nil:
		return stored, false, fault.Wrap(fault.Invalid, "unsendable", "an event of the key is malformed and cannot be sent", wrong)
	case err != nil:
		return stored, false, fmt.Errorf("event %s: %w", stored.ID, err)
	}
	return stored, isEvent, nil
}
