package operator

import (
	"context"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// ParkedComparison tells how the first events of a parked key stand in the store.
type ParkedComparison struct {
	Events int      // how many were looked at
	Differ []string // ids of those with other content than is parked
	Gone   []string // ids of those that are no longer stored
}

// comparedEvents is how many events of a key are compared: as many as a relay sends at
// a time.
const comparedEvents = 100

// CompareParked reads the first events of a parked key where they were committed.
func (o *Operator) CompareParked(ctx context.Context, key string) (ParkedComparison, error) {
	var c ParkedComparison
	events, err := o.Lot.First(ctx, key, comparedEvents)
	if err != nil {
		return c, err
	}
	for _, e := range events {
		document, err := o.store.Events.Event(ctx, key, e.ID)
		switch {
		case fault.Is(err, fault.NotFound):
			c.Gone = append(c.Gone, e.ID)
		case err != nil:
			return c, err
		case !relay.SameContent(o.store.Decoder, e.Document, document):
			c.Differ = append(c.Differ, e.ID)
		}
		c.Events++
	}
	return c, nil
}
