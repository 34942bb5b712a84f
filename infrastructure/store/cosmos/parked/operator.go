package parked

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Gates returns all closed gates in the order in which they were closed.
func (s *Store) Gates(ctx context.Context) ([]relay.Gate, error) {
	var gates []relay.Gate
	err := s.gates(ctx, "list gates", "SELECT * FROM c WHERE c.type = @type", func(g relay.Gate) { gates = append(gates, g) })
	slices.SortFunc(gates, func(a, b relay.Gate) int { return a.Closing.At.Compare(b.Closing.At) })
	return gates, err
}

// SetIntent stores the intent of an operator in the gate of key and replaces an earlier one. A
// relay executes it; see relay.Drainer. Fault: NotFound if the gate is open.
func (s *Store) SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	for {
		g, err := s.Gate(ctx, key)
		if err != nil {
			return relay.Gate{}, err
		}
		g.Intent = &intent
		g, err = s.Update(ctx, g)
		if !fault.Is(err, fault.PreconditionFailed) || ctx.Err() != nil {
			return g, err
		}
	}
}

// Skipped returns the records of the skipped events of key, in their order.
func (s *Store) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	var skipped []relay.Skipped
	err := s.query(ctx, "read skipped events of key "+key, azcosmos.NewPartitionKeyString(key), "SELECT * FROM c WHERE c.type = @type ORDER BY c.position", typeSkippedEvent,
		func(raw []byte) error {
			e, intent, err := decodeParked(raw)
			if err == nil && intent != nil {
				skipped = append(skipped, relay.Skipped{Event: e, Intent: *intent})
			}
			return err
		})
	return skipped, err
}

// SkippedAmong returns those of the events that were skipped. It costs one query of the index in each
// physical partition.
func (s *Store) SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	skipped, ids := map[relay.EventRef]bool{}, make([]string, len(events))
	for i, e := range events {
		ids[i] = skippedID(e.ID)
	}
	err := s.query(ctx, "find skipped events", azcosmos.NewPartitionKey(), "SELECT c.id, c.partitionKey FROM c WHERE c.type = @type AND ARRAY_CONTAINS(@ids, c.id)", typeSkippedEvent,
		func(raw []byte) error {
			var found struct{ ID, PartitionKey string }
			err := json.Unmarshal(raw, &found)
			if e := (relay.EventRef{Key: found.PartitionKey, ID: strings.TrimPrefix(found.ID, skippedID(""))}); slices.Contains(events, e) {
				skipped[e] = true
			}
			return err
		}, azcosmos.QueryParameter{Name: "@ids", Value: ids})
	return skipped, err
}
