package operator

import (
	"context"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Life is what is stored of an aggregate's events, and where they stand.
type Life struct {
	Key    string
	Events []Lived
	// Trouble says why the stored events could not be read; "" = they could.
	Trouble string
	// Parked is the key's gate and line; nil while it flows.
	Parked *ParkedKey
	// Missing are the sequence numbers between the first and the last that no event has.
	Missing []int64
}

// Lived is an event and what became of it.
type Lived struct {
	relay.Message
	CommittedAt time.Time // by the store's clock, in whole seconds
	Fate        Fate
}

// Fate is what became of an event.
type Fate string

// The fates.
const (
	FateAccepted Fate = "accepted" // the broker has it: all of its age was handled
	FateParked   Fate = "parked"   // refused
	FateHeld     Fate = "held"     // waits behind a parked one
	FateSkipped  Fate = "skipped"  // an operator left it out
	FateWaiting  Fate = "waiting"  // not yet handled, or not known to be
)

// lifeLine bounds what is shown of a line.
const lifeLine = 200

// Life reads what is stored of key. Events that have expired are not there any more.
// Handled is a time before which all changes were handled, as Standing.Handled tells.
func (o *Operator) Life(ctx context.Context, key string, handled time.Time) (*Life, error) {
	life := &Life{Key: key}
	stored, err := o.store.Events.OfKey(ctx, key)
	switch {
	case fault.Is(err, fault.Invalid):
		life.Trouble = err.Error()
	case err != nil:
		return nil, err
	}
	line, err := o.ParkedKey(ctx, key, lifeLine)
	switch {
	case err == nil:
		life.Parked = &line
	case !fault.Is(err, fault.NotFound):
		return nil, err
	default:
		if line.Skipped, err = o.Lot.Skipped(ctx, key); err != nil {
			return nil, err
		}
	}
	messages := make([]relay.Message, 0, len(stored))
	for _, e := range stored {
		messages = append(messages, e.Message)
	}
	life.Missing = missing(messages)
	fates := fatesOf(line)
	for _, e := range stored {
		fate, known := fates[e.ID]
		if !known {
			fate = FateWaiting
			if e.StoredAt.Add(time.Second).Before(handled) { // the store tells whole seconds
				fate = FateAccepted
			}
		}
		life.Events = append(life.Events, Lived{Message: e.Message, CommittedAt: e.StoredAt, Fate: fate})
	}
	return life, nil
}

func fatesOf(line ParkedKey) map[string]Fate {
	fates := map[string]Fate{}
	for _, s := range line.Skipped {
		fates[s.Event.ID] = FateSkipped
	}
	for _, e := range line.Line {
		fates[e.ID] = FateHeld
		if e.Attempts > 0 {
			fates[e.ID] = FateParked
		}
	}
	return fates
}
