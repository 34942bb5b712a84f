package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// parkFollowers puts the events of parked keys behind their gates. A key whose gate turns
// out to be open is left for publish.
func (r *Relay) parkFollowers(ctx context.Context, p *page) {
	for _, k := range r.memory.parkedOf(p) {
		events := make([]ParkedEvent, len(k.messages))
		for n := range k.messages {
			m := &k.messages[n]
			events[n] = r.parkedEvent(m, p.changes[m.Index].Raw, p.faults[m.Index], 0)
		}
		done, err := r.opts.Parked.Park(ctx, k.name, events, nil)
		switch {
		case err == nil:
			k.parked = true
			r.tellParked(ctx, events, done)
		case errors.Is(err, ErrGateOpen):
			r.memory.setParked(k.name, false)
		default:
			k.err = &Error{Class: Outage, Reason: "not_parked", Err: fmt.Errorf("park events of key %q: %w", k.name, err)}
		}
	}
}

// DeadLetter is an event that was refused too often, or waited too long.
type DeadLetter struct {
	Change   Change
	Attempts int   // how often it was tried
	Err      error // the last failure
	// Waiting says that it was not refused: it waited too long while others passed. Its
	// key is drained without an operator; see Closing.Auto.
	Waiting bool
}

// noKey is the key under which events are parked that have none. It has no gate: there
// is no order to keep.
const noKey = "(no key)"

// Park closes the gate of the event's key with the event behind it. Later events of the
// key that Handle is given are parked too. It returns nil once that is stored; the
// caller may then move its checkpoint past the event. ctx is that of the ownership.
func (r *Relay) Park(ctx context.Context, l DeadLetter) error {
	if r.opts.Parked == nil {
		return errors.New("park: there is no place for parked events")
	}
	m, _, _ := r.decoder.Decode(l.Change.Raw) // what can be read of it; l.Err tells the rest
	if l.Change.LSN != 0 {
		m.LSN = l.Change.LSN
	}
	if m.Key == "" { // neither its sequence nor its LSN compares with those of the others
		m.Key, m.Sequence = noKey, 0
	}
	event := r.parkedEvent(&m, l.Change.Raw, l.Err, l.Attempts)
	closing := &Closing{Event: event.ID, Reason: event.Reason, Error: event.Error, At: event.ParkedAt, Auto: l.Waiting, Progress: r.memory.progress(&m)}
	done, err := r.opts.Parked.Park(ctx, m.Key, []ParkedEvent{event}, closing)
	if err != nil {
		return fmt.Errorf("park event %q of key %q: %w", event.ID, event.Key, err)
	}
	r.memory.setParked(m.Key, true)
	if len(done.Before) > 0 { // it may be this call's, whose answer was lost before
		done.Parked = []ParkedEvent{event}
	}
	r.tellParked(ctx, []ParkedEvent{event}, done)
	return nil
}

// parkedEvent returns the event of m. fault is why it cannot be sent; nil = it is held.
func (r *Relay) parkedEvent(m *Message, document []byte, fault error, attempts int) ParkedEvent {
	e := ParkedEvent{
		ID: m.ID, Key: m.Key, Action: m.Action, Document: document, LSN: m.LSN, Sequence: m.Sequence,
		Reason: "held", Attempts: attempts, ParkedAt: r.opts.Now().UTC().Round(time.Millisecond),
	}
	if e.ID == "" { // a name of its own, the same at every attempt
		sum := sha256.Sum256(document)
		e.ID = fmt.Sprintf("no-id-%d-%x", m.LSN, sum[:8])
	}
	if fault != nil {
		e.Reason, e.Error = ReasonOf(fault), fault.Error()
	}
	return e
}

func (r *Relay) tellParked(ctx context.Context, events []ParkedEvent, done Parking) {
	for _, e := range done.Parked {
		tell(ctx, r.opts.Observer.Parked, e)
	}
	for _, e := range events {
		i := slices.IndexFunc(done.Before, func(old ParkedEvent) bool { return old.ID == e.ID })
		if i >= 0 && !SameContent(r.decoder, done.Before[i].Document, e.Document) {
			tell(ctx, r.opts.Observer.Newer, e)
		}
	}
}

// SameContent reports whether two documents of an event make the same message, or are
// unfit for the same reason. What the store adds to a document may differ.
func SameContent(decoder Decoder, a, b []byte) bool {
	x, isX, errX := decoder.Decode(a)
	y, isY, errY := decoder.Decode(b)
	return isX == isY && bytes.Equal(x.Body, y.Body) && fmt.Sprint(errX) == fmt.Sprint(errY)
}
