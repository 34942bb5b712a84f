package parked

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// Update implements relay.DrainStore.
func (s *Store) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	body, err := s.encodeGate(g)
	if err != nil {
		return relay.Gate{}, err
	}
	etag := azcore.ETag(g.Version)
	reply, err := s.container.ReplaceItem(ctx, s.partition(g.Key), gateID, body, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if err != nil {
		return relay.Gate{}, store.AsFault("update the gate of key "+g.Key, err)
	}
	s.mergeReply(reply.SessionToken)
	g.Version = string(reply.ETag)
	return g, nil
}

// errEnough ends a query early.
var errEnough = errors.New("no further result is needed")

// First implements relay.DrainStore. A reply of the service has at most 4 MB.
func (s *Store) First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error) {
	query := fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.type = @type ORDER BY c.position", limit)
	var events []relay.ParkedEvent
	err := s.query(ctx, "read parked events of key "+key, s.partition(key), query, typeParkedEvent, func(raw []byte) error {
		e, _, err := decodeParked(raw)
		e.Key = key
		events = append(events, e)
		if maxBytes -= len(e.Document); maxBytes <= 0 && err == nil {
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return events, err
}

// Remove implements relay.DrainStore.
func (s *Store) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	g.Events -= int64(len(events))
	b, err := s.begin(g)
	if err != nil {
		return relay.Gate{}, err
	}
	for i := range events {
		b.DeleteItem(parkedID(events[i].ID), nil)
	}
	if skipped != nil {
		d := s.parkedDocument(&skipped.Event)
		d.ID, d.Type, d.Skipped = skippedID(skipped.Event.ID), s.kind(typeSkippedEvent), (*document.IntentData)(&skipped.Intent)
		body, err := d.encode(skipped.Event.Document)
		if err != nil {
			return relay.Gate{}, err
		}
		b.UpsertItem(body, nil)
	}
	g, _, err = s.execute(ctx, "remove parked events of key "+g.Key, g, b)
	return g, err
}

// Replace replaces the document of a parked event of g and stores the gate like Update.
func (s *Store) Replace(ctx context.Context, g relay.Gate, e relay.ParkedEvent) (relay.Gate, error) {
	b, err := s.begin(g)
	if err != nil {
		return relay.Gate{}, err
	}
	body, err := s.parkedDocument(&e).encode(e.Document)
	if err != nil {
		return relay.Gate{}, err
	}
	b.ReplaceItem(parkedID(e.ID), body, nil)
	g, _, err = s.execute(ctx, "replace parked event "+e.ID+" of key "+g.Key, g, b)
	return g, err
}

// Open implements relay.DrainStore. It deletes the gate, then its entry in the list.
func (s *Store) Open(ctx context.Context, g relay.Gate) error {
	etag := azcore.ETag(g.Version)
	reply, err := s.container.DeleteItem(ctx, s.partition(g.Key), gateID, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if err != nil {
		return store.AsFault("open the gate of key "+g.Key, err)
	}
	s.mergeReply(reply.SessionToken)
	s.unlist(ctx, g.Key, g.Listed)
	return nil
}

// Intents implements relay.DrainStore.
func (s *Store) Intents(ctx context.Context) ([]relay.Gate, error) {
	var gates []relay.Gate
	err := s.gates(ctx, "look for intents", "SELECT * FROM c WHERE c.type = @type AND (IS_DEFINED(c.intent) OR c.closing.auto = true)", func(g relay.Gate) { gates = append(gates, g) })
	return gates, err
}

// everyKey selects a query across partitions, which the gateway serves for filters and
// projections.
var everyKey = azcosmos.NewPartitionKey()

func (s *Store) gates(ctx context.Context, what, query string, visit func(relay.Gate)) error {
	return s.query(ctx, what, everyKey, query, typeGate, func(raw []byte) error {
		g, err := decodeGate(raw)
		if err == nil {
			g.Key = s.key(g.Key)
			visit(g)
		}
		return err
	})
}

// query calls visit for each result of a query with the parameter @type.
func (s *Store) query(ctx context.Context, what string, key azcosmos.PartitionKey, query, kind string, visit func(raw []byte) error, more ...azcosmos.QueryParameter) error {
	err := s.queryAt(ctx, s.sessionToken(), what, key, query, kind, visit, more...)
	s.noteRead(what, err)
	return err
}

// queryAt is query on a replica that has reached position.
func (s *Store) queryAt(ctx context.Context, position *string, what string, key azcosmos.PartitionKey, query, kind string, visit func(raw []byte) error, more ...azcosmos.QueryParameter) error {
	pager := s.container.NewQueryItemsPager(query, key, &azcosmos.QueryOptions{
		SessionToken: position, QueryParameters: append([]azcosmos.QueryParameter{{Name: "@type", Value: s.kind(kind)}}, more...),
	})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return store.AsFault(what, err)
		}
		if page.RawResponse != nil {
			s.mergeSession(page.RawResponse.Header.Get(store.HeaderSession))
		}
		for _, raw := range page.Items {
			if err := visit(raw); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return nil
}

// parkedAmong returns those of the events that are parked, by id. It reads no others, because a key may
// have more than fit into memory.
func (s *Store) parkedAmong(ctx context.Context, key string, events []relay.ParkedEvent) (map[string]relay.ParkedEvent, error) {
	there, ids := make(map[string]relay.ParkedEvent), make([]string, len(events))
	for i := range events {
		ids[i] = parkedID(events[i].ID)
	}
	const query = "SELECT * FROM c WHERE c.type = @type AND ARRAY_CONTAINS(@ids, c.id)"
	err := s.query(ctx, "find parked events of key "+key, s.partition(key), query, typeParkedEvent, func(raw []byte) error {
		e, _, err := decodeParked(raw)
		e.Key = key
		there[e.ID] = e
		return err
	}, azcosmos.QueryParameter{Name: "@ids", Value: ids})
	return there, err
}
