package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/domain/fault"
)

// parkFollowers parks the events of parked keys. It reports whether it has found an open gate: that key is
// left for publish. A store that does not answer, or is busy, is asked once and not for each key, and a slow one
// gets no longer for all keys, because the caller waits.
func (r *Relay) parkFollowers(ctx context.Context, p *page, keys []*keyState) (opened bool) {
	if len(keys) == 0 {
		return false // without the cost of a context
	}
	limited, cancel := context.WithTimeout(ctx, followersTimeout)
	defer cancel()
	var away error
	for _, k := range keys {
		if away != nil {
			k.err = notParked(k, away)
			continue
		}
		events := make([]ParkedEvent, len(k.messages))
		for n := range k.messages {
			m := &k.messages[n]
			events[n] = r.parkedEvent(m, p.changes[m.Index].Raw, p.faults[m.Index])
			events[n].Progress = p.place(m)
		}
		done, err := r.opts.Parked.Park(limited, k.name, events, nil)
		switch {
		case err == nil:
			k.parked = true
			r.notifyParked(ctx, events, done)
		case errors.Is(err, ErrGateOpen):
			r.memory.setParked(k.name, false)
			k.gated, opened = false, true
		default:
			k.err = notParked(k, err)
			if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Throttled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				away = err
			}
		}
	}
	return opened
}

// followersTimeout bounds the wait of later pages of a lane. What was parked by then stays so.
const followersTimeout = 10 * time.Second

func notParked(k *keyState, err error) *Error {
	return &Error{Class: Outage, Reason: "not_parked", Err: fmt.Errorf("park events of key %q: %w", k.name, err)}
}

// DeadLetter is an event that used up its attempts, or waited too long.
type DeadLetter struct {
	Change   Change
	Attempts int   // number of attempts
	Err      error // the last failure: Failure.Err, or an error that wraps it
	// Waiting is true if the event was not refused but waited too long while others were
	// accepted. Its key is drained without an operator; see Closing.Auto.
	Waiting bool
}

// noKey is the key of parked events without a key. They need no order, so the gate of this key
// holds nothing back.
const noKey = "(no key)"

// Park parks the event and closes the gate of its key. Later events of the key passed to Handle
// are parked too. It returns nil once the event is stored; the caller may then move its
// checkpoint past the event. ctx must end with the ownership.
func (r *Relay) Park(ctx context.Context, l DeadLetter) error {
	if r.opts.Parked == nil {
		return errors.New("park: Options.Parked is not set")
	}
	m, _, _ := decode(r.decoder, &l.Change) // m has the readable fields; l.Err is the failure
	if m.Key == "" {
		m.Key, m.Sequence = noKey, 0 // sequences of events without a key are not comparable
	}
	event := r.parkedEvent(&m, l.Change.Raw, l.Err)
	event.Attempts = l.Attempts
	// A failure that Handle did not report, such as a panic, says nothing about the events
	// before this one in its transaction.
	failure, reported := errors.AsType[*reported](l.Err)
	if reported {
		event.Progress = failure.place
	}
	closing := &Closing{Event: event.ID, Reason: event.Reason, Error: event.Error, At: event.ParkedAt, Auto: l.Waiting}
	done, err := r.opts.Parked.Park(ctx, m.Key, []ParkedEvent{event}, closing)
	// A store that does not answer may have closed the gate. If it has not, the next event of the key
	// finds the gate open. After a refusal the gate is as before: the key must not wait for a store
	// that cannot take it.
	if err == nil || unanswered(err) {
		r.memory.setParked(m.Key, true)
	}
	if err != nil {
		return fmt.Errorf("park event %q of key %q: %w", event.ID, event.Key, err)
	}
	if reported {
		r.memory.forget(failure.in, &m)
	}
	if len(done.Parked) == 0 { // probably parked by an earlier call whose answer was lost
		done.Parked = []ParkedEvent{event}
	}
	r.notifyParked(ctx, []ParkedEvent{event}, done)
	return nil
}

// unanswered reports whether a store may have done what failed.
func unanswered(err error) bool {
	answer, known := errors.AsType[*fault.Error](err)
	return !known || answer.Kind == fault.Unavailable
}

// parkedEvent returns the parked form of m. fault is the failure of m; nil if it is held. It
// copies the strings, which alias the document, because an observer may keep them.
func (r *Relay) parkedEvent(m *Message, document []byte, fault error) ParkedEvent {
	e := ParkedEvent{
		ID: strings.Clone(m.ID), Key: strings.Clone(m.Key), Action: strings.Clone(m.Action), Document: document, LSN: m.LSN, Sequence: m.Sequence,
		Reason: "held", ParkedAt: r.opts.Now().UTC().Round(time.Millisecond),
	}
	if fault != nil {
		e.Reason, e.Error = ReasonOf(fault), fault.Error()
	}
	return e
}

func (r *Relay) notifyParked(ctx context.Context, events []ParkedEvent, done ParkResult) {
	for _, e := range done.Parked {
		notify(ctx, r.opts.Observer.Parked, e)
	}
	for _, e := range events {
		i := slices.IndexFunc(done.Existing, func(old ParkedEvent) bool { return old.ID == e.ID })
		if i >= 0 && !SameContent(r.decoder, done.Existing[i].Document, e.Document) {
			notify(ctx, r.opts.Observer.Newer, e)
		}
	}
}

// SameContent reports whether two documents of an event decode to the same message, or fail with
// the same error. Fields that the store adds to a document may differ.
func SameContent(decoder Decoder, a, b []byte) bool {
	x, isX, errX := decoder.Decode(a)
	y, isY, errY := decoder.Decode(b)
	return isX == isY && bytes.Equal(x.Body, y.Body) && fmt.Sprint(errX) == fmt.Sprint(errY)
}
