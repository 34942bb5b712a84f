package parkedtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Store is what Run tests: a store of parked events and the operator's side of it.
type Store interface {
	relay.ParkedStore
	relay.DrainStore
	// SetIntent notes on the gate of key what an operator wants, over what another one
	// wanted; NotFound if the gate is open.
	SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	// Skipped returns the records of what was left out of key, the oldest first.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
}

// Run tests that a store of parked events keeps the promises of relay.ParkedStore and
// relay.DrainStore. open returns an empty one.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for name, test := range map[string]func(lot){
		"parks in order":                  parksInOrder,
		"parks once":                      parksOnce,
		"what was passed is done":         progressIsDone,
		"closes for what is done":         closesForWhatIsDone,
		"what was removed is done":        removedIsDone,
		"orders by sequence":              ordersBySequence,
		"unknown sequences keep places":   unknownKeepsItsPlace,
		"waiting keys are found":          autoIsWanted,
		"parks many and large":            parksMany,
		"an open gate takes nothing":      openGateTakesNothing,
		"changes are guarded by version":  guardsByVersion,
		"removing keeps the order":        removesFromTheFront,
		"opening loses nothing":           openingLosesNothing,
		"an intent reaches the drainer":   intentReaches,
		"a skipped event leaves a record": skipLeavesARecord,
	} {
		t.Run(name, func(t *testing.T) { test(lot{t, open(t)}) })
	}
}

// lot is a store under test. Its key is k, unless a test says otherwise.
type lot struct {
	*testing.T
	store Store
}

var (
	at      = time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	closing = relay.Closing{Event: "k-e1", Reason: "too_large", Error: "too large by far", At: at}
	skip    = relay.Intent{Verb: relay.VerbSkip, Event: "k-e1", By: "ann", Note: "known", At: at}
)

func event(n int) relay.ParkedEvent {
	id := fmt.Sprintf("k-e%d", n)
	return relay.ParkedEvent{
		ID: id, Key: "k", Action: "Changed", LSN: int64(n), Sequence: int64(n), Reason: "held", ParkedAt: at,
		Document: fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","type":"domainEvent","data":{"action":"Changed","sequence":%d}}`, id, n),
	}
}

func events(from, to int) (out []relay.ParkedEvent) {
	for n := from; n <= to; n++ {
		out = append(out, event(n))
	}
	return out
}

func idsOf(events []relay.ParkedEvent) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// must returns what a call gave that may not fail.
func must[V any](v V, err error) func(l lot) V {
	return func(l lot) V {
		l.Helper()
		if err != nil {
			l.Fatal(err)
		}
		return v
	}
}

func (l lot) park(c *relay.Closing, events ...relay.ParkedEvent) relay.Parking {
	l.Helper()
	return must(l.store.Park(l.Context(), "k", events, c))(l)
}

// parkOther parks an event of another key, of which no test wants anything.
func (l lot) parkOther() {
	l.Helper()
	must(l.store.Park(l.Context(), "other", []relay.ParkedEvent{{ID: "other-e1", Document: event(1).Document, ParkedAt: at}}, &relay.Closing{Event: "other-e1", At: at}))(l)
}

func (l lot) gate() relay.Gate {
	l.Helper()
	return must(l.store.Gate(l.Context(), "k"))(l)
}

func (l lot) first(limit int) []relay.ParkedEvent {
	l.Helper()
	return must(l.store.First(l.Context(), "k", limit))(l)
}

func (l lot) remove(g relay.Gate, events []relay.ParkedEvent) relay.Gate {
	l.Helper()
	return must(l.store.Remove(l.Context(), g, events, nil))(l)
}

func (l lot) intents() []relay.Gate {
	l.Helper()
	return must(l.store.Intents(l.Context()))(l)
}

// want checks what stands behind the gate, by ids.
func (l lot) want(ids ...string) {
	l.Helper()
	line := l.first(1000)
	if got := idsOf(line); !slices.Equal(got, ids) {
		l.Fatalf("behind the gate stand %v, want %v", got, ids)
	}
	for i, e := range line {
		if e.Key != "k" || i > 0 && e.Position <= line[i-1].Position {
			l.Fatalf("%s of key %s at %d, want k behind the one before", e.ID, e.Key, e.Position)
		}
	}
	if g := l.gate(); g.Events != int64(len(ids)) {
		l.Errorf("the gate counts %d events, want %d", g.Events, len(ids))
	}
}

func parksInOrder(l lot) {
	first := event(1)
	first.Reason, first.Error, first.Attempts = "too_large", "too large by far", 5
	l.park(&closing, first)
	l.park(nil, events(2, 9)...)
	l.park(nil, events(10, 12)...)
	l.parkOther()
	l.want(idsOf(events(1, 12))...)

	got := l.first(1)
	if len(got) != 1 || !bytes.Equal(got[0].Document, first.Document) {
		l.Fatalf("first %+v, want the one with its document", got)
	}
	got[0].Position = 0
	if fmt.Sprint(got[0]) != fmt.Sprint(first) {
		l.Errorf("event %+v, want %+v", got[0], first)
	}
	if g := l.gate(); g.Closing != closing || g.Key != "k" || g.Version == "" {
		l.Errorf("gate %+v, want why it was closed", g)
	}
	keys := must(l.store.Closed(l.Context()))(l)
	if slices.Sort(keys); !slices.Equal(keys, []string{"k", "other"}) {
		l.Errorf("closed %v, want both keys", keys)
	}
}

func parksOnce(l lot) {
	l.park(&closing, events(1, 4)...)
	other := event(3)
	other.Document, other.ParkedAt = []byte(`{"id":"k-e3","partitionKey":"k","mended":true}`), at.Add(time.Minute)
	done := l.park(nil, other, event(5), event(6))
	if !slices.Equal(idsOf(done.Parked), idsOf(events(5, 6))) || done.Parked[0].Position == 0 {
		l.Errorf("parked %+v, want 5 and 6 with their positions", done.Parked)
	}
	if len(done.Before) != 1 || !bytes.Equal(done.Before[0].Document, event(3).Document) {
		l.Errorf("parked before %+v, want 3 as it stands there", done.Before)
	}
	again := events(1, 6)
	for i := range again {
		again[i].ParkedAt = at.Add(time.Hour)
	}
	if done := l.park(&closing, again...); len(done.Parked) != 0 || len(done.Before) != 6 {
		l.Errorf("parked again %+v, want nothing new and all six before", done)
	}
	l.want(idsOf(again)...)
}

func parksMany(l lot) {
	many := events(1, 250)
	for i := range many[:3] {
		many[i].Document = fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","filler":%q}`, many[i].ID, bytes.Repeat([]byte("x"), 900<<10))
	}
	l.park(&closing, many...)
	l.want(idsOf(many)...)
}

func openGateTakesNothing(l lot) {
	if _, err := l.store.Park(l.Context(), "k", events(1, 2), nil); !errors.Is(err, relay.ErrGateOpen) {
		l.Errorf("park: %v, want ErrGateOpen", err)
	}
	if line := l.first(1000); len(line) != 0 {
		l.Errorf("behind the open gate stand %v", idsOf(line))
	}
	if _, err := l.store.Gate(l.Context(), "k"); !fault.Is(err, fault.NotFound) {
		l.Errorf("gate: %v, want not found", err)
	}
}
