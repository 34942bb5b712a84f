package relay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// gates are the keys known to be parked, and the tenures for which that is known.
//
// The set may name a key that is open, never the other way around for a key of a range
// that this relay owns: only the owner closes gates, and a new owner asks for the closed
// ones before its first page. A key that turns out to be open leaves the set.
type gates struct {
	mu     sync.Mutex // guards the fields below
	closed map[string]struct{}
	epochs map[string]int64 // by lease: the tenure whose gates are loaded
}

func (g *gates) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.closed) > 0
}

func (g *gates) has(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.closed[key]
	return ok
}

func (g *gates) close(keys ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(map[string]struct{})
	}
	for _, key := range keys {
		g.closed[strings.Clone(key)] = struct{}{}
	}
}

func (g *gates) open(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.closed, key)
}

// loaded reports whether the gates were loaded for t.
func (g *gates) loaded(t Tenure) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	epoch, ok := g.epochs[t.Lease]
	return ok && epoch == t.Epoch
}

func (g *gates) load(t Tenure, keys []string) {
	g.close(keys...)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.epochs == nil {
		g.epochs = make(map[string]int64)
	}
	g.epochs[t.Lease] = t.Epoch
}

// adopt loads the gates before the first page of a tenure.
func (r *Relay) adopt(ctx context.Context, t Tenure) error {
	if r.opts.Lot == nil || r.gates.loaded(t) {
		return nil
	}
	keys, err := r.opts.Lot.Closed(ctx)
	if err != nil {
		return &Error{Class: Outage, Reason: "gates_unknown", Err: fmt.Errorf("load gates: %w", err)}
	}
	r.gates.load(t, keys)
	return nil
}

// parkClosed puts the events of parked keys behind their gates. A key whose gate turns
// out to be open is left for publish.
func (r *Relay) parkClosed(ctx context.Context, p *page) {
	if r.opts.Lot == nil || !r.gates.any() {
		return
	}
	for i := range p.keys {
		k := &p.keys[i]
		if !r.gates.has(k.name) {
			continue
		}
		events := make([]ParkedEvent, len(k.messages))
		for n := range k.messages {
			events[n] = r.parked(&k.messages[n], p.changes[k.messages[n].Index].Raw, p.faults[k.messages[n].Index], 0)
		}
		err := r.opts.Lot.Park(ctx, k.name, events, nil)
		switch {
		case err == nil:
			k.parked = true
			r.tellParked(ctx, events)
		case errors.Is(err, ErrGateOpen):
			r.gates.open(k.name)
		default:
			k.err = &Error{Class: Outage, Reason: "not_parked", Err: fmt.Errorf("park events of key %q: %w", k.name, err)}
			k.sendable = 0
		}
	}
}

// Letter is an event that was refused too often.
type Letter struct {
	Change   Change
	Attempts int   // how often it was tried
	Err      error // the last refusal
}

// noKey is the key under which events are parked that have none. It has no gate: there
// is no order to keep.
const noKey = "(no key)"

// Park closes the gate of the event's key with the event behind it. Later events of the
// key that HandleOwned is given are parked too. It returns nil once that is stored; the
// caller may then move its checkpoint past the event. ctx is that of the tenure.
func (r *Relay) Park(ctx context.Context, l Letter) error {
	if r.opts.Lot == nil {
		return errors.New("park: there is no place for parked events")
	}
	m, _, _ := r.decoder.Decode(l.Change.Raw) // what can be read of it; l.Err tells the rest
	if l.Change.LSN != 0 {
		m.LSN = l.Change.LSN
	}
	if m.Key == "" {
		m.Key = noKey
	}
	event := r.parked(&m, l.Change.Raw, l.Err, l.Attempts)
	closing := &Closing{Event: event.ID, Reason: event.Reason, Error: event.Error, At: event.ParkedAt}
	if err := r.opts.Lot.Park(ctx, m.Key, []ParkedEvent{event}, closing); err != nil {
		return fmt.Errorf("park event %q of key %q: %w", event.ID, event.Key, err)
	}
	r.gates.close(m.Key)
	r.tellParked(ctx, []ParkedEvent{event})
	return nil
}

// parked returns the event of m. fault is why it cannot be sent; nil = it is held.
func (r *Relay) parked(m *Message, document []byte, fault error, attempts int) ParkedEvent {
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

func (r *Relay) tellParked(ctx context.Context, events []ParkedEvent) {
	if r.opts.Hooks.Parked == nil {
		return
	}
	for _, e := range events {
		r.opts.Hooks.Parked(ctx, e)
	}
}
