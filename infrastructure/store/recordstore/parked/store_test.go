package parked_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/infrastructure/store/recordstore/parked"
)

// memory is a store of records in memory.
type memory struct {
	sync.Mutex
	gates   map[string]parked.Gate
	wanted  map[string]bool
	events  []relay.ParkedEvent
	skipped []relay.Skipped
	version int
	commits []int  // how many events each has put or taken away
	before  func() // runs before a commit, once
}

func newMemory() *memory {
	return &memory{gates: map[string]parked.Gate{}, wanted: map[string]bool{}}
}

func (m *memory) of(key string) (line []relay.ParkedEvent) {
	for _, e := range m.events {
		if e.Key == key {
			line = append(line, e)
		}
	}
	slices.SortFunc(line, func(a, b relay.ParkedEvent) int { return cmp.Compare(a.Position, b.Position) })
	return line
}

func (m *memory) Find(_ context.Context, key string, ids []string) (parked.Gate, []relay.ParkedEvent, error) {
	m.Lock()
	defer m.Unlock()
	return m.gates[key], slices.DeleteFunc(m.of(key), func(e relay.ParkedEvent) bool { return !slices.Contains(ids, e.ID) }), nil
}

func (m *memory) Gates(_ context.Context, wanted bool) (gates []parked.Gate, err error) {
	m.Lock()
	defer m.Unlock()
	for key, g := range m.gates {
		if m.wanted[key] || !wanted {
			gates = append(gates, g)
		}
	}
	return gates, nil
}

func (m *memory) First(_ context.Context, key string, limit, maxBytes int) (first []relay.ParkedEvent, err error) {
	m.Lock()
	defer m.Unlock()
	for _, e := range m.of(key) {
		if len(first) < limit && maxBytes > 0 {
			first = append(first, e)
		}
		maxBytes -= len(e.Document)
	}
	return first, nil
}

func (m *memory) Skipped(_ context.Context, key string) ([]relay.Skipped, error) {
	return slices.DeleteFunc(slices.Clone(m.skipped), func(s relay.Skipped) bool { return s.Event.Key != key }), nil
}

func (m *memory) SkippedAmong(_ context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	skipped := map[relay.EventRef]bool{}
	for _, s := range m.skipped {
		if e := (relay.EventRef{Key: s.Event.Key, ID: s.Event.ID}); slices.Contains(events, e) {
			skipped[e] = true
		}
	}
	return skipped, nil
}

func (m *memory) Commit(_ context.Context, c *parked.Change) (string, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	m.Lock()
	defer m.Unlock()
	if m.gates[c.Gate.Key].Version != c.Gate.Version {
		return "", fmt.Errorf("gate of %s: %w", c.Gate.Key, parked.ErrChanged)
	}
	m.version++
	c.Gate.Version = strconv.Itoa(m.version)
	m.gates[c.Gate.Key], m.wanted[c.Gate.Key] = c.Gate, c.Wanted
	if c.Open {
		delete(m.gates, c.Gate.Key)
	}
	m.events = append(m.events, c.Put...)
	m.events = slices.DeleteFunc(m.events, func(e relay.ParkedEvent) bool {
		return e.Key == c.Gate.Key && slices.Contains(c.Remove, e.ID)
	})
	for i := range m.events {
		if e := &m.events[i]; c.Replace != nil && e.Key == c.Replace.Key && e.ID == c.Replace.ID {
			e.Document = c.Replace.Document
		}
	}
	if c.Skipped != nil {
		m.skipped = append(slices.DeleteFunc(m.skipped, func(s relay.Skipped) bool {
			return s.Event.Key == c.Skipped.Event.Key && s.Event.ID == c.Skipped.Event.ID
		}), *c.Skipped)
	}
	m.commits = append(m.commits, len(c.Put)+len(c.Remove))
	return c.Gate.Version, nil
}

func TestStore(t *testing.T) {
	parkedtest.Run(t, func(*testing.T) parkedtest.Store { return parked.Store{Records: newMemory()} })
}

func eventsOf(n, size int) (events []relay.ParkedEvent) {
	for i := range n {
		events = append(events, relay.ParkedEvent{ID: fmt.Sprint("e", i), Document: make([]byte, size), Sequence: int64(i + 1), LSN: int64(i + 1)})
	}
	return events
}

// One commit is not larger than Firestore allows.
func TestLimitsOfACommit(t *testing.T) {
	for name, c := range map[string]struct{ n, size, most int }{"many": {1000, 10, 400}, "large": {10, 1 << 20, 3}, "huge": {2, 8 << 20, 1}} {
		m := newMemory()
		store := parked.Store{Records: m}
		done, err := store.Park(t.Context(), "k", eventsOf(c.n, c.size), &relay.Closing{})
		if err != nil || len(done.Parked) != c.n || slices.Max(m.commits) != c.most {
			t.Errorf("%s: %d parked by commits of %v events, %v; want at most %d each", name, len(done.Parked), m.commits, err, c.most)
		}
	}
}

// A change that loses a race is repeated on the result of the winner.
func TestChangeIsRepeatedAfterARace(t *testing.T) {
	m := newMemory()
	store := parked.Store{Records: m}
	events := eventsOf(2, 10)
	m.before = func() {
		if _, err := store.Park(t.Context(), "k", events[:1], &relay.Closing{Event: "other"}); err != nil {
			t.Error(err)
		}
	}
	done, err := store.Park(t.Context(), "k", events, &relay.Closing{Event: "own"})
	if err != nil || len(done.Parked) != 1 || len(done.Existing) != 1 {
		t.Errorf("parked %+v, %v; want the second, and the first before", done, err)
	}
	m.before = func() {
		g, err := store.Gate(t.Context(), "k")
		if err == nil {
			g.Attempts = 3
			_, err = store.Update(t.Context(), g)
		}
		if err != nil {
			t.Error(err)
		}
	}
	g, err := store.SetIntent(t.Context(), "k", relay.Intent{Verb: relay.VerbRetry})
	if err != nil || g.Attempts != 3 || g.Intent == nil || g.Closing.Event != "other" || g.Events != 2 {
		t.Errorf("gate %+v, %v; want both changes of it", g, err)
	}
}
