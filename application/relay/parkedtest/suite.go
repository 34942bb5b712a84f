package parkedtest

import (
	"context"
	"errors"
	"fmt"
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

// Run tests that a store of parked events keeps the promises of relay.ParkedStore and relay.DrainStore. open returns
// an empty one.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for name, test := range map[string]func(*testing.T, Store){
		"parks in order":                  parksInOrder,
		"parks once":                      parksOnce,
		"what was passed is done":         progressIsDone,
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
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

var at = time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)

func event(key string, n int) relay.ParkedEvent {
	id := fmt.Sprintf("%s-e%d", key, n)
	return relay.ParkedEvent{
		ID: id, Key: key, Action: "Changed", LSN: int64(n), Sequence: int64(n), Reason: "held", ParkedAt: at,
		Document: fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"action":"Changed","sequence":%d}}`, id, key, n),
	}
}

func events(key string, from, to int) []relay.ParkedEvent {
	var out []relay.ParkedEvent
	for n := from; n <= to; n++ {
		out = append(out, event(key, n))
	}
	return out
}

var closing = &relay.Closing{Event: "k-e1", Reason: "too_large", Error: "too large by far", At: at}

func park(t *testing.T, l Store, key string, c *relay.Closing, events ...relay.ParkedEvent) relay.Parking {
	t.Helper()
	done, err := l.Park(t.Context(), key, events, c)
	if err != nil {
		t.Fatalf("park: %v", err)
	}
	return done
}

func gate(t *testing.T, l Store, key string) relay.Gate {
	t.Helper()
	g, err := l.Gate(t.Context(), key)
	if err != nil {
		t.Fatalf("gate of %s: %v", key, err)
	}
	return g
}

// wantLine checks the ids behind the gate of key.
func wantLine(t *testing.T, l Store, key string, from, to int) {
	t.Helper()
	got, err := l.First(t.Context(), key, 1000)
	if err != nil {
		t.Fatalf("first: %v", err)
	}
	if len(got) != to-from+1 {
		t.Fatalf("%d events behind the gate, want %d", len(got), to-from+1)
	}
	for i, e := range got {
		if want := event(key, from+i); e.ID != want.ID || e.Key != key || i > 0 && e.Position <= got[i-1].Position {
			t.Fatalf("place %d has %s at %d, want %s behind the one before", i, e.ID, e.Position, want.ID)
		}
	}
}

func parksInOrder(t *testing.T, l Store) {
	first := event("k", 1)
	first.Reason, first.Error, first.Attempts = "too_large", "too large by far", 5
	park(t, l, "k", closing, first)
	park(t, l, "k", nil, events("k", 2, 9)...)
	park(t, l, "k", nil, events("k", 10, 12)...)
	park(t, l, "other", &relay.Closing{Event: "other-e1", At: at}, event("other", 1))
	wantLine(t, l, "k", 1, 12)

	got, err := l.First(t.Context(), "k", 1)
	if err != nil || len(got) != 1 {
		t.Fatalf("first: %d events, %v", len(got), err)
	}
	e := got[0]
	if string(e.Document) != string(first.Document) {
		t.Errorf("document %s, want it as it was", e.Document)
	}
	e.Document, e.Position, first.Document = nil, 0, nil
	if fmt.Sprint(e) != fmt.Sprint(first) {
		t.Errorf("event %+v, want %+v", e, first)
	}
	if g := gate(t, l, "k"); g.Events != 12 || g.Closing != *closing || g.Key != "k" || g.Version == "" {
		t.Errorf("gate %+v, want 12 events and why it was closed", g)
	}
	keys, err := l.Closed(t.Context())
	if err != nil || len(keys) != 2 {
		t.Errorf("closed %v, %v; want both keys", keys, err)
	}
}

func parksOnce(t *testing.T, l Store) {
	park(t, l, "k", closing, events("k", 1, 4)...)
	other := event("k", 3)
	other.Document, other.ParkedAt = []byte(`{"id":"k-e3","partitionKey":"k","mended":true}`), at.Add(time.Minute)
	done := park(t, l, "k", nil, other, event("k", 5), event("k", 6))
	if len(done.Parked) != 2 || done.Parked[0].ID != "k-e5" || done.Parked[0].Position == 0 || done.Parked[1].ID != "k-e6" {
		t.Errorf("parked %+v, want 5 and 6 with their positions", done.Parked)
	}
	if len(done.Before) != 1 || string(done.Before[0].Document) != string(event("k", 3).Document) {
		t.Errorf("parked before %+v, want 3 as it stands there", done.Before)
	}
	again := events("k", 1, 6)
	for i := range again {
		again[i].ParkedAt = at.Add(time.Hour)
	}
	if done := park(t, l, "k", closing, again...); len(done.Parked) != 0 || len(done.Before) != 6 {
		t.Errorf("parked again %+v, want nothing new and all six before", done)
	}
	wantLine(t, l, "k", 1, 6)
	if g := gate(t, l, "k"); g.Events != 6 {
		t.Errorf("gate counts %d events, want 6", g.Events)
	}
}

func parksMany(t *testing.T, l Store) {
	many := events("k", 1, 250)
	for i := range many[:3] {
		filler := make([]byte, 900<<10)
		for n := range filler {
			filler[n] = 'x'
		}
		many[i].Document = fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","filler":%q}`, many[i].ID, filler)
	}
	park(t, l, "k", closing, many...)
	wantLine(t, l, "k", 1, 250)
}

func openGateTakesNothing(t *testing.T, l Store) {
	if _, err := l.Park(t.Context(), "k", events("k", 1, 2), nil); !errors.Is(err, relay.ErrGateOpen) {
		t.Errorf("park: %v, want ErrGateOpen", err)
	}
	wantLine(t, l, "k", 1, 0)
	if _, err := l.Gate(t.Context(), "k"); !fault.Is(err, fault.NotFound) {
		t.Errorf("gate: %v, want not found", err)
	}
}
