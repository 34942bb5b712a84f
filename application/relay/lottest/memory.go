// Package lottest has what proves an implementation of relay.Lot and relay.DrainLot:
// Run, a suite that each of them passes, and Memory, one that lives in memory.
package lottest

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Memory is a lot in memory, for tests. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex // guards the fields below
	gates   map[string]*relay.Gate
	events  map[string][]relay.ParkedEvent
	skipped []relay.Skipped
	version int64
	fail    error
}

var (
	_ relay.Lot      = (*Memory)(nil)
	_ relay.DrainLot = (*Memory)(nil)
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

// Closed implements relay.Lot.
func (l *Memory) Closed(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key := range l.gates {
		keys = append(keys, key)
	}
	return keys, l.fail
}

// Park implements relay.Lot.
func (l *Memory) Park(_ context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	key = strings.Clone(key)
	g, closed := l.gates[key]
	if !closed {
		if closing == nil {
			return relay.ErrGateOpen
		}
		g = &relay.Gate{Key: key, Closing: *closing}
		l.gates[key] = g
	}
	for _, e := range events {
		if slices.ContainsFunc(l.events[key], func(have relay.ParkedEvent) bool { return have.ID == e.ID }) {
			continue
		}
		g.Last++
		e.ID, e.Key, e.Action = strings.Clone(e.ID), key, strings.Clone(e.Action)
		e.Document, e.Position = bytes.Clone(e.Document), g.Last
		l.events[key] = append(l.events[key], e)
		g.Events++
	}
	l.touch(g)
	return nil
}

// touch gives the gate a new version. mu is held.
func (l *Memory) touch(g *relay.Gate) {
	l.version++
	g.Version = strconv.FormatInt(l.version, 10)
}

// Intents implements relay.DrainLot.
func (l *Memory) Intents(context.Context) ([]relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gates []relay.Gate
	for _, g := range l.gates {
		if g.Intent != nil {
			gates = append(gates, *g)
		}
	}
	return gates, l.fail
}

// Gate implements relay.DrainLot.
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

// Update implements relay.DrainLot.
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
	g.Events = int64(len(l.events[g.Key]))
	l.touch(&g)
	l.gates[g.Key] = &g
	return g, nil
}

// First implements relay.DrainLot.
func (l *Memory) First(_ context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events[key]
	return slices.Clone(events[:min(limit, len(events))]), l.fail
}

// Remove implements relay.DrainLot.
func (l *Memory) Remove(_ context.Context, g relay.Gate, ids []string, skipped *relay.Skipped) (relay.Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored, err := l.update(g)
	if err != nil {
		return relay.Gate{}, err
	}
	l.events[g.Key] = slices.DeleteFunc(l.events[g.Key], func(e relay.ParkedEvent) bool { return slices.Contains(ids, e.ID) })
	l.gates[g.Key].Events = int64(len(l.events[g.Key]))
	stored.Events = l.gates[g.Key].Events
	if skipped != nil {
		l.skipped = append(l.skipped, *skipped)
	}
	return stored, nil
}

// Open implements relay.DrainLot.
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
