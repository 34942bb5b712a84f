package cosmos

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
)

// Update implements relay.DrainLot.
func (l *ParkedLot) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	body, err := encodeGate(g)
	if err != nil {
		return relay.Gate{}, err
	}
	etag := azcore.ETag(g.Version)
	reply, err := l.container.ReplaceItem(ctx, keyValue(g.Key), gateID, body, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if err != nil {
		return relay.Gate{}, asFault("update the gate of key "+g.Key, err)
	}
	l.sawReply(reply.SessionToken)
	g.Version = string(reply.ETag)
	return g, nil
}

// First implements relay.DrainLot.
func (l *ParkedLot) First(ctx context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	query := fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.type = @type ORDER BY c.position", limit)
	var events []relay.ParkedEvent
	err := l.query(ctx, "read parked events of key "+key, keyValue(key), query, typeParkedEvent, func(raw []byte) error {
		e, _, err := decodeParked(raw)
		events = append(events, e)
		return err
	})
	return events, err
}

// Remove implements relay.DrainLot.
func (l *ParkedLot) Remove(ctx context.Context, g relay.Gate, ids []string, skipped *relay.Skipped) (relay.Gate, error) {
	what := "remove parked events of key " + g.Key
	for {
		some := ids[:min(len(ids), lotOperations)]
		ids = ids[len(some):]
		g.Events -= int64(len(some))
		b, err := l.begin(g)
		if err != nil {
			return relay.Gate{}, err
		}
		for _, id := range some {
			b.DeleteItem(id, nil)
		}
		if skipped != nil {
			d := newParkedDocument(&skipped.Event)
			d.ID, d.Type, d.Skipped = skippedID(skipped.Event.ID), typeSkippedEvent, (*intentData)(&skipped.Intent)
			body, err := d.encode(skipped.Event.Document)
			if err != nil {
				return relay.Gate{}, err
			}
			b.UpsertItem(body, nil)
			skipped = nil
		}
		if g, _, err = l.execute(ctx, what, g, b); err != nil || len(ids) == 0 {
			return g, err
		}
	}
}

// Open implements relay.DrainLot. The gate goes first, then its entry in the list.
func (l *ParkedLot) Open(ctx context.Context, g relay.Gate) error {
	etag := azcore.ETag(g.Version)
	reply, err := l.container.DeleteItem(ctx, keyValue(g.Key), gateID, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if err != nil {
		return asFault("open the gate of key "+g.Key, err)
	}
	l.sawReply(reply.SessionToken)
	l.unlist(ctx, g.Key, g.Listed)
	return nil
}

// Intents implements relay.DrainLot.
func (l *ParkedLot) Intents(ctx context.Context) ([]relay.Gate, error) {
	var gates []relay.Gate
	err := l.gates(ctx, "look for intents", "SELECT * FROM c WHERE c.type = @type AND IS_DEFINED(c.intent)", func(g relay.Gate) { gates = append(gates, g) })
	return gates, err
}

// everyKey asks the gateway to serve a query across partitions, which it does for
// filters and projections.
var everyKey = azcosmos.NewPartitionKey()

func (l *ParkedLot) gates(ctx context.Context, what, query string, visit func(relay.Gate)) error {
	return l.query(ctx, what, everyKey, query, typeGate, func(raw []byte) error {
		g, err := decodeGate(raw)
		if err == nil {
			visit(g)
		}
		return err
	})
}

// query calls visit for each result of a query whose parameter @type is kind.
func (l *ParkedLot) query(ctx context.Context, what string, key azcosmos.PartitionKey, query, kind string, visit func(raw []byte) error) error {
	return l.queryAt(ctx, l.seen(), what, key, query, kind, visit)
}

// queryAt is query by a replica that is not behind position.
func (l *ParkedLot) queryAt(ctx context.Context, position *string, what string, key azcosmos.PartitionKey, query, kind string, visit func(raw []byte) error) error {
	pager := l.container.NewQueryItemsPager(query, key, &azcosmos.QueryOptions{
		SessionToken: position, QueryParameters: []azcosmos.QueryParameter{{Name: "@type", Value: kind}},
	})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return asFault(what, err)
		}
		if page.RawResponse != nil {
			l.saw(page.RawResponse.Header.Get(headerSessionToken))
		}
		for _, raw := range page.Items {
			if err := visit(raw); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return nil
}

// parkedIDs returns the ids of the events behind the gate of key.
func (l *ParkedLot) parkedIDs(ctx context.Context, key string) (map[string]bool, error) {
	ids := make(map[string]bool)
	err := l.query(ctx, "list parked events of key "+key, keyValue(key), "SELECT * FROM c WHERE c.type = @type", typeParkedEvent, func(raw []byte) error {
		e, _, err := decodeParked(raw)
		ids[e.ID] = true
		return err
	})
	return ids, err
}
