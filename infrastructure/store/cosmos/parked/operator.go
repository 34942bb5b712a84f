package parked

import (
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Gates returns all closed gates, the one closed first in front.
func (l *Lot) Gates(ctx context.Context) ([]relay.Gate, error) {
	var gates []relay.Gate
	err := l.gates(ctx, "list gates", "SELECT * FROM c WHERE c.type = @type", func(g relay.Gate) { gates = append(gates, g) })
	slices.SortFunc(gates, func(a, b relay.Gate) int { return a.Closing.At.Compare(b.Closing.At) })
	return gates, err
}

// SetIntent notes on the gate of key what an operator wants, in place of what may stand
// there. A relay will take it up; see relay.Drainer. NotFound if the gate is open.
func (l *Lot) SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	for {
		g, err := l.Gate(ctx, key)
		if err != nil {
			return relay.Gate{}, err
		}
		g.Intent = &intent
		g, err = l.Update(ctx, g)
		if !fault.Is(err, fault.PreconditionFailed) || ctx.Err() != nil {
			return g, err
		}
	}
}

// Skipped returns the records of the events of key that were left out, in their order.
func (l *Lot) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	var skipped []relay.Skipped
	err := l.query(ctx, "read skipped events of key "+key, azcosmos.NewPartitionKeyString(key), "SELECT * FROM c WHERE c.type = @type ORDER BY c.position", typeSkippedEvent,
		func(raw []byte) error {
			e, intent, err := decodeParked(raw)
			if err == nil && intent != nil {
				skipped = append(skipped, relay.Skipped{Event: e, Intent: *intent})
			}
			return err
		})
	return skipped, err
}
