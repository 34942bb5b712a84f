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

var (
	_ relay.ParkedStore = (*Memory)(nil)
	_ relay.DrainStore  = (*Memory)(nil)
)

// NewMemory returns an empty lot.
func NewMemory() *Memory {
	return &Memory{gates: map[string]*relay.Gate{}, events: map[string][]relay.ParkedEvent{}}
}

// Fail makes every later call fail with err; nil ends that.
func (l *Memory) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// Closed implements relay.ParkedStore.
func (l *Memory) Closed(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key := range l.gates {
		keys = append(keys, key)
	}
	return keys, l.fail
}

// Park implements relay.ParkedStore.
func (l *Memory) Park(_ context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.Parking, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var done relay.Parking
	if l.fail != nil {
		return done, l.fail
	}
	key = strings.Clone(key)
	g, closed := l.gates[key]
	if !closed {
		if closing == nil {
			return done, relay.ErrGateOpen
		}
		fresh := relay.NewGate(key, *closing)
		g = &fresh
		l.gates[key] = g
	}
	for _, e := range events {
		if i := slices.IndexFunc(l.events[key], func(have relay.ParkedEvent) bool { return have.ID == e.ID }); i >= 0 {
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
	l.touch(g)
	return done, nil
}

// touch gives the gate a new version. mu is held.
func (l *Memory) touch(g *relay.Gate) {
	l.version++
	g.Version = strconv.FormatInt(l.version, 10)
}

// Intents implements relay.DrainStore.
func (l *Memory) Intents(context.Context) ([]relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gates []relay.Gate
	for _, g := range l.gates {
		if g.Wanted() != nil {
			gates = append(gates, *g)
		}
	}
	return gates, l.fail
}

// Gate implements relay.DrainStore.
func (l *Memory) Gate(_ context.Context, key string) (relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, ok := l.gates[key]
	switch {
	case l.fail != nil:
		return relay.Gate{}, l.fail
	case !ok:
		return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
	}
	return *g, nil
}

// Update implements relay.DrainStore.
func (l *Memory) Update(_ context.Context, g relay.Gate) (relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.update(g)
}

// update stores g if its version is the stored one. mu is held.
func (l *Memory) update(g relay.Gate) (relay.Gate, error) {
	stored, ok := l.gates[g.Key]
	switch {
	case l.fail != nil:
		return relay.Gate{}, l.fail
	case !ok:
		return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
	case stored.Version != g.Version:
		return relay.Gate{}, fault.New(fault.PreconditionFailed, "", "another version")
	}
	l.touch(&g)
	l.gates[g.Key] = &g
	return g, nil
}

// First implements relay.DrainStore.
func (l *Memory) First(_ context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events[key]
	return slices.Clone(events[:min(limit, len(events))]), l.fail
}

// Remove implements relay.DrainStore.
func (l *Memory) Remove(_ context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.Release(events)
	stored, err := l.update(g)
	if err != nil {
		return relay.Gate{}, err
	}
	l.events[g.Key] = slices.DeleteFunc(l.events[g.Key], func(e relay.ParkedEvent) bool {
		return slices.ContainsFunc(events, func(gone relay.ParkedEvent) bool { return gone.ID == e.ID })
	})
	if skipped != nil {
		l.skipped = append(l.skipped, *skipped)
	}
	return stored, nil
}

// Open implements relay.DrainStore.
func (l *Memory) Open(_ context.Context, g relay.Gate) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.update(g); err != nil {
		return err
	}
	delete(l.gates, g.Key)
	return nil
}

// SetIntent does what an operator does: it notes on a gate what is wanted.
func (l *Memory) SetIntent(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, ok := l.gates[key]
	if !ok {
		return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
	}
	g.Intent = &intent
	l.touch(g)
	return *g, nil
}

// Skipped returns the records of what operators left out.
func (l *Memory) Skipped(context.Context, string) ([]relay.Skipped, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.skipped), nil
}

// Mend replaces the document of a parked event, as an operator may.
func (l *Memory) Mend(key, id string, document []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.events[key] {
		if e := &l.events[key][i]; e.ID == id {
			e.Document = bytes.Clone(document)
		}
	}
}
