package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
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

// The statuses. Nothing but a proof makes an event sent: the store has no record of each acceptance.
const (
	StatusSent    Status = "sent"    // the broker has it: the checkpoint has passed it
	StatusParked  Status = "parked"  // refused
	StatusHeld    Status = "held"    // waits for a parked event of its key
	StatusSkipped Status = "skipped" // an operator skipped it
	StatusWaiting Status = "waiting" // the checkpoint has not passed it
	StatusUnknown Status = "unknown" // nothing proves another status
	StatusDead    Status = "dead"    // in the dead-letter queue of a consumer
)

// timelineEvents bounds the parked events of a timeline, which a person reads.
const timelineEvents = 200

// Timeline reads the stored events of key; expired events are absent. The snapshot, which must be older
// than this call, proves the statuses.
func (o *Operator) Timeline(ctx context.Context, key string, s Snapshot) (*Timeline, error) {
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
	status, proved := line.statuses(), o.proof(ctx, s)
	for i := range stored {
		e := &stored[i]
		timeline.Events = append(timeline.Events, Entry{Message: e.Message, CommittedAt: e.StoredAt, Status: status(e, proved(e))})
	}
	return timeline, nil
}

// unconfirmed reports whether a replica has no gate and the identity may not ask the primary. A
// timeline takes the replica's answer, because it only shows it, and is read again.
func unconfirmed(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code == relay.CodeGateUnconfirmed
}

// statuses returns a function that corrects the status of an event of the key by what is parked. An
// event after the last one that was read may be parked as well.
func (p ParkedKey) statuses() func(e *relay.StoredEvent, proved Status) Status {
	byID, read := map[string]Status{}, int64(0)
	for _, s := range p.Skipped {
		byID[s.Event.ID] = StatusSkipped
	}
	for _, e := range p.Line {
		byID[e.ID], read = StatusHeld, e.Sequence
		if e.Attempts > 0 {
			byID[e.ID] = StatusParked
		}
	}
	cut := p.Gate.Events > int64(len(p.Line))
	return func(e *relay.StoredEvent, proved Status) Status {
		status, known := byID[e.ID]
		switch {
		case known:
			return status
		case cut && (e.Sequence == 0 || e.Sequence > read):
			return StatusUnknown
		}
		return proved
	}
}

// provesFor is the age up to which a snapshot proves that an event waits. That one was sent, it proves
// for ever.
const provesFor = 15 * time.Second

// proof returns a function that returns sent, waiting or unknown for an event, by the lease of its
// range. The position of the event decides if the store has it; else the time, in whole seconds. A
// change that waits may be younger than events with positions behind it, because a long transaction stores
// it late.
func (o *Operator) proof(ctx context.Context, s Snapshot) func(e *relay.StoredEvent) Status {
	placer, placed := o.store.Feed.(changefeed.Placer)
	if placed {
		_, err := o.store.Feed.Source(ctx) // Place needs it
		placed = err == nil
	}
	waiting := StatusUnknown
	if time.Since(s.At) < provesFor {
		waiting = StatusWaiting
	}
	handled := s.Handled()
	handledBefore := func(e *relay.StoredEvent, t time.Time) bool { return e.StoredAt.Add(time.Second).Before(t) }
	return func(e *relay.StoredEvent) Status {
		if handledBefore(e, handled) && e.LSN == 0 {
			return StatusSent
		}
		if !placed {
			return StatusUnknown
		}
		place, err := placer.Place(e.Key)
		at := slices.IndexFunc(s.Ranges, func(r Range) bool { return r.State == changefeed.LeaseLive && r.Range.Has(place) })
		if err != nil || at < 0 {
			return StatusUnknown
		}
		r := &s.Ranges[at]
		oldest := r.Lag.Oldest // not handled
		switch known := e.LSN > 0 && r.LSN > 0; {
		case known && e.LSN < r.LSN:
			return StatusSent
		case known && e.LSN > r.LSN:
			return waiting
		case !r.Lag.Known:
			return StatusUnknown
		case oldest.IsZero() && handledBefore(e, s.measured(r)), e.LSN == 0 && handledBefore(e, oldest):
			return StatusSent
		case !oldest.IsZero() && !e.StoredAt.Before(oldest.Truncate(time.Second)):
			return waiting
		}
		return StatusUnknown
	}
}
