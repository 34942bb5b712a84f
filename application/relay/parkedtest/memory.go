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

func (m *Memory) lock() (unlock func()) {
	m.mu.Lock()
	return m.mu.Unlock
}

// Fail makes every later call fail with err, until it is called with nil.
func (m *Memory) Fail(err error) {
	defer m.lock()()
	m.fail = err
}

// Closed implements relay.ParkedStore.
func (m *Memory) Closed(context.Context) (keys []string, err error) {
	defer m.lock()()
	if m.fail != nil {
		return nil, m.fail
	}
	for key := range m.gates {
		keys = append(keys, key)
	}
	return keys, nil
}

// Park implements relay.ParkedStore.
func (m *Memory) Park(_ context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (done relay.ParkResult, err error) {
	defer m.lock()()
	key = strings.Clone(key)
	g, err := m.gate(key)
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
		e.ID, e.Key, e.Action, e.Document = strings.Clone(e.ID), key, strings.Clone(e.Action), bytes.Clone(e.Document)
		e.Progress.Event = strings.Clone(e.Progress.Event)
		next := g
		if !next.Admit(&e) {
			continue
		}
		if i := slices.IndexFunc(m.events[key], hasID(e.ID)); i >= 0 {
			done.Existing = append(done.Existing, m.events[key][i])
			continue
		}
		g = next
		done.Parked = append(done.Parked, e)
		e.Progress = relay.Progress{} // not stored
		m.events[key] = append(m.events[key], e)
	}
	slices.SortFunc(m.events[key], func(a, b relay.ParkedEvent) int { return cmp.Compare(a.Position, b.Position) })
	m.set(g)
	return done, nil
}

func hasID(id string) func(relay.ParkedEvent) bool {
	return func(e relay.ParkedEvent) bool { return e.ID == id }
}

// gate returns the gate of key. mu is held.
func (m *Memory) gate(key string) (relay.Gate, error) {
	g, closed := m.gates[key]
	switch {
	case m.fail != nil:
		return relay.Gate{}, m.fail
	case !closed:
		return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
	}
	return *g, nil
}

// set stores the gate under a new version. mu is held.
func (m *Memory) set(g relay.Gate) relay.Gate {
	m.version++
	g.Version = strconv.FormatInt(m.version, 10)
	m.gates[g.Key] = &g
	return g
}

// Intents implements relay.DrainStore.
func (m *Memory) Intents(context.Context) (gates []relay.Gate, err error) {
	defer m.lock()()
	for _, g := range m.gates {
		if g.EffectiveIntent() != nil {
			gates = append(gates, *g)
		}
	}
	return gates, m.fail
}

// Gate implements relay.DrainStore.
func (m *Memory) Gate(_ context.Context, key string) (relay.Gate, error) {
	defer m.lock()()
	return m.gate(key)
}

// Update implements relay.DrainStore.
func (m *Memory) Update(_ context.Context, g relay.Gate) (relay.Gate, error) {
	defer m.lock()()
	return m.update(g)
}

// update stores g if its version is the stored one. mu is held.
func (m *Memory) update(g relay.Gate) (relay.Gate, error) {
	stored, err := m.gate(g.Key)
	if err == nil && stored.Version != g.Version {
		err = fault.New(fault.PreconditionFailed, "", "another version")
	}
	if err != nil {
		return relay.Gate{}, err
	}
	return m.set(g), nil
}

// First implements relay.DrainStore.
func (m *Memory) First(_ context.Context, key string, limit, maxBytes int) (first []relay.ParkedEvent, err error) {
	defer m.lock()()
	for _, e := range m.events[key] {
		if len(first) == limit || maxBytes <= 0 {
			break
		}
		first = append(first, e)
		maxBytes -= len(e.Document)
	}
	return first, m.fail
}

// Remove implements relay.DrainStore.
func (m *Memory) Remove(_ context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	defer m.lock()()
	g.Events -= int64(len(events))
	g, err := m.update(g)
	if err != nil {
		return g, err
	}
	for _, e := range events {
		m.events[g.Key] = slices.DeleteFunc(m.events[g.Key], hasID(e.ID))
	}
	if skipped != nil {
		m.skipped = append(slices.DeleteFunc(m.skipped, func(s relay.Skipped) bool {
			return s.Event.Key == skipped.Event.Key && s.Event.ID == skipped.Event.ID
		}), *skipped)
	}
	return g, nil
}

// Replace implements Store.
func (m *Memory) Replace(_ context.Context, g relay.Gate, e relay.ParkedEvent) (relay.Gate, error) {
	defer m.lock()()
	g, err := m.update(g)
	if i := slices.IndexFunc(m.events[g.Key], hasID(e.ID)); err == nil && i >= 0 {
		m.events[g.Key][i].Document = bytes.Clone(e.Document)
	}
	return g, err
}

// Open implements relay.DrainStore.
func (m *Memory) Open(_ context.Context, g relay.Gate) error {
	defer m.lock()()
	_, err := m.update(g)
	if err == nil {
		delete(m.gates, g.Key)
	}
	return err
}

// SetIntent implements Store.
func (m *Memory) SetIntent(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	defer m.lock()()
	g, err := m.gate(key)
	if err != nil {
		return g, err
	}
	g.Intent = &intent
	return m.set(g), nil
}

// Skipped implements Store.
func (m *Memory) Skipped(_ context.Context, key string) ([]relay.Skipped, error) {
	defer m.lock()()
	return slices.DeleteFunc(slices.Clone(m.skipped), func(s relay.Skipped) bool { return s.Event.Key != key }), nil
}

// SkippedAmong implements Store.
func (m *Memory) SkippedAmong(_ context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	defer m.lock()()
	skipped := map[relay.EventRef]bool{}
	for _, s := range m.skipped {
		if e := (relay.EventRef{Key: s.Event.Key, ID: s.Event.ID}); slices.Contains(events, e) {
			skipped[e] = true
		}
	}
	return skipped, nil
}

// ReplaceEvent replaces the document of a parked event, as an operator may.
func (m *Memory) ReplaceEvent(key, id string, document []byte) {
	defer m.lock()()
	if i := slices.IndexFunc(m.events[key], hasID(id)); i >= 0 {
		m.events[key][i].Document = bytes.Clone(document)
	}
}
