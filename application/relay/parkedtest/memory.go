package parkedtest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Memory is a store of parked events in memory, for tests. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex // guards the fields below
	gates   map[string]*relay.Gate
	events  map[string][]relay.ParkedEvent
	skipped []relay.Skipped
	version int64
	fail    error
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{gates: map[string]*relay.Gate{}, events: map[string][]relay.ParkedEvent{}}
}

func (l *Memory) lock() (unlock func()) {
	l.mu.Lock()
	return l.mu.Unlock
}

// Fail makes every later call fail with err; nil ends that.
func (l *Memory) Fail(err error) {
	defer l.lock()()
	l.fail = err
}

// Closed implements relay.ParkedStore.
func (l *Memory) Closed(context.Context) (keys []string, err error) {
	defer l.lock()()
	for key := range l.gates {
		keys = append(keys, key)
	}
	return keys, l.fail
}

// Park implements relay.ParkedStore.
func (l *Memory) Park(_ context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (done relay.Parking, err error) {
	defer l.lock()()
	key = strings.Clone(key)
	g, err := l.gate(key)
	switch {
	case err == nil:
	case !fault.Is(err, fault.NotFound):
		return done, err
	case closing == nil:
		return done, relay.ErrGateOpen
	default:
		g = relay.NewGate(key, *closing)
	}
	for _, e := range events {
		if i := slices.IndexFunc(l.events[key], hasID(e.ID)); i >= 0 {
			done.Before = append(done.Before, l.events[key][i])
			continue
		}
		e.ID, e.Key, e.Action, e.Document = strings.Clone(e.ID), key, strings.Clone(e.Action), bytes.Clone(e.Document)
		if g.Admit(&e) {
			done.Parked = append(done.Parked, e)
			l.events[key] = append(l.events[key], e)
		}
	}
	slices.SortFunc(l.events[key], func(a, b relay.ParkedEvent) int { return cmp.Compare(a.Position, b.Position) })
	l.set(g)
	return done, nil
}

func hasID(id string) func(relay.ParkedEvent) bool {
	return func(e relay.ParkedEvent) bool { return e.ID == id }
}

// gate returns the gate of key. mu is held.
func (l *Memory) gate(key string) (relay.Gate, error) {
	g, closed := l.gates[key]
	switch {
	case l.fail != nil:
		return relay.Gate{}, l.fail
	case !closed:
		return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
	}
	return *g, nil
}

// set stores the gate under a new version. mu is held.
func (l *Memory) set(g relay.Gate) relay.Gate {
	l.version++
	g.Version = strconv.FormatInt(l.version, 10)
	l.gates[g.Key] = &g
	return g
}

// Intents implements relay.DrainStore.
func (l *Memory) Intents(context.Context) (gates []relay.Gate, err error) {
	defer l.lock()()
	for _, g := range l.gates {
		if g.Wanted() != nil {
			gates = append(gates, *g)
		}
	}
	return gates, l.fail
}

// Gate implements relay.DrainStore.
func (l *Memory) Gate(_ context.Context, key string) (relay.Gate, error) {
	defer l.lock()()
	return l.gate(key)
}

// Update implements relay.DrainStore.
func (l *Memory) Update(_ context.Context, g relay.Gate) (relay.Gate, error) {
	defer l.lock()()
	return l.update(g)
}

// update stores g if its version is the stored one. mu is held.
func (l *Memory) update(g relay.Gate) (relay.Gate, error) {
	stored, err := l.gate(g.Key)
	if err == nil && stored.Version != g.Version {
		err = fault.New(fault.PreconditionFailed, "", "another version")
	}
	if err != nil {
		return relay.Gate{}, err
	}
	return l.set(g), nil
}

// First implements relay.DrainStore.
func (l *Memory) First(_ context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	defer l.lock()()
	events := l.events[key]
	return slices.Clone(events[:min(limit, len(events))]), l.fail
}

// Remove implements relay.DrainStore.
func (l *Memory) Remove(_ context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	defer l.lock()()
	g.Release(events)
	g, err := l.update(g)
	if err != nil {
		return g, err
	}
	for _, e := range events {
		l.events[g.Key] = slices.DeleteFunc(l.events[g.Key], hasID(e.ID))
	}
	if skipped != nil {
		l.skipped = append(l.skipped, *skipped)
	}
	return g, nil
}

// Open implements relay.DrainStore.
func (l *Memory) Open(_ context.Context, g relay.Gate) error {
	defer l.lock()()
	_, err := l.update(g)
	if err == nil {
		delete(l.gates, g.Key)
	}
	return err
}

// SetIntent implements Store.
func (l *Memory) SetIntent(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	defer l.lock()()
	g, err := l.gate(key)
	if err != nil {
		return g, err
	}
	g.Intent = &intent
	return l.set(g), nil
}

// Skipped implements Store.
func (l *Memory) Skipped(context.Context, string) ([]relay.Skipped, error) {
	defer l.lock()()
	return slices.Clone(l.skipped), nil
}

// Mend replaces the document of a parked event, as an operator may.
func (l *Memory) Mend(key, id string, document []byte) {
	defer l.lock()()
	if i := slices.IndexFunc(l.events[key], hasID(id)); i >= 0 {
		l.events[key][i].Document = bytes.Clone(document)
	}
}
