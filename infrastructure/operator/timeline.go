package operator

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Timeline contains the stored events of an aggregate with their status.
type Timeline struct {
	Key    string
	Events []Entry
	// Trouble is the reason for which the stored events could not be read; "" if they could.
	Trouble string
	// Parked contains the gate and the parked events of the key; nil if the gate is open.
	Parked *ParkedKey
	// Missing lists the sequence numbers between the first and the last event that are absent.
	Missing []int64
}

// Entry is an event of a timeline.
type Entry struct {
	relay.Message
	CommittedAt time.Time // by the store's clock, in whole seconds
	Status      Status
}

// Committed returns the bounds of the time of the commit, to the millisecond. The store has whole
// seconds. The creation precedes the commit and the broker's acceptance follows it, so they narrow
// the bounds. A time outside that second is ignored, because it is of a clock that differs.
// accepted may be zero.
func (e *Entry) Committed(created, accepted time.Time) (from, until time.Time) {
	from, until = e.CommittedAt, e.CommittedAt.Add(time.Second-time.Millisecond)
	within := func(t time.Time) bool { return !t.Before(from) && !t.After(until) }
	if created = created.Truncate(time.Millisecond); within(created) {
		from = created
	}
	if within(accepted) {
		until = accepted
	}
	return from, until
}

// Status is the delivery status of an event.
type Status string

// The statuses.
const (
	StatusAccepted Status = "accepted" // the broker has it: every change of its age was handled
	StatusParked   Status = "parked"   // refused
	StatusHeld     Status = "held"     // waits for a parked event of its key
	StatusSkipped  Status = "skipped"  // an operator skipped it
	StatusWaiting  Status = "waiting"  // not handled yet, or unknown
)

// timelineEvents bounds the parked events of a timeline, which a person reads.
const timelineEvents = 200

// Timeline reads the stored events of key; expired events are absent. handled is a time before
// which all changes were handled, see Snapshot.Handled.
func (o *Operator) Timeline(ctx context.Context, key string, handled time.Time) (*Timeline, error) {
	timeline := &Timeline{Key: key}
	stored, err := o.store.Events.OfKey(ctx, key)
	switch {
	case fault.Is(err, fault.Invalid):
		timeline.Trouble = err.Error()
	case err != nil:
		return nil, err
	}
	line, err := o.ParkedKey(ctx, key, timelineEvents)
	switch {
	case err == nil:
		timeline.Parked = &line
	case !fault.Is(err, fault.NotFound) && !unconfirmed(err):
		return nil, err
	default:
		if line.Skipped, err = o.Parked.Skipped(ctx, key); err != nil {
			return nil, err
		}
	}
	messages := make([]relay.Message, 0, len(stored))
	for _, e := range stored {
		messages = append(messages, e.Message)
	}
	timeline.Missing = missing(messages)
	statuses := statusByID(line)
	for _, e := range stored {
		status, known := statuses[e.ID]
		if !known {
			status = StatusWaiting
			if e.StoredAt.Add(time.Second).Before(handled) { // the store has whole seconds
				status = StatusAccepted
			}
		}
		timeline.Events = append(timeline.Events, Entry{Message: e.Message, CommittedAt: e.StoredAt, Status: status})
	}
	return timeline, nil
}

// unconfirmed reports whether a replica has no gate and the identity may not ask the primary. A
// timeline takes the replica's answer, because it only shows it, and is read again.
func unconfirmed(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code == relay.CodeGateUnconfirmed
}

func statusByID(line ParkedKey) map[string]Status {
	statuses := map[string]Status{}
	for _, s := range line.Skipped {
		statuses[s.Event.ID] = StatusSkipped
	}
	for _, e := range line.Line {
		statuses[e.ID] = StatusHeld
		if e.Attempts > 0 {
			statuses[e.ID] = StatusParked
		}
	}
	return statuses
}
