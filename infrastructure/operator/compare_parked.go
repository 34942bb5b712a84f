package operator

import (
	"context"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// ParkedComparison compares the first events of a parked key with the store.
type ParkedComparison struct {
	Events int      // compared
	Differ []string // ids of events with other content in the store
	Gone   []string // ids of events that are no longer stored
}

// comparedEvents bounds the comparison, because each event is one read of the store.
const comparedEvents = 100

// CompareParked compares the first events of a parked key with their documents in the store.
func (o *Operator) CompareParked(ctx context.Context, key string) (ParkedComparison, error) {
	var c ParkedComparison
	events, err := o.Parked.First(ctx, key, comparedEvents, shownBytes)
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
