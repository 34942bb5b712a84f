package lottest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Lot is what Run tests: a lot and the operator's side of it.
type Lot interface {
	relay.Lot
	relay.DrainLot
	// SetIntent notes on the gate of key what an operator wants, over what another one
	// wanted; NotFound if the gate is open.
	SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	// Skipped returns the records of what was left out of key, the oldest first.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
}

// Run tests that a lot keeps the promises of relay.Lot and relay.DrainLot. open returns
// an empty one.
func Run(t *testing.T, open func(t *testing.T) Lot) {
	for name, test := range map[string]func(*testing.T, Lot){
		"parks in order":                  parksInOrder,
		"parks once":                      parksOnce,
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

func park(t *testing.T, l Lot, key string, c *relay.Closing, events ...relay.ParkedEvent) {
	t.Helper()
	if err := l.Park(t.Context(), key, events, c); err != nil {
		t.Fatalf("park: %v", err)
	}
}

func gate(t *testing.T, l Lot, key string) relay.Gate {
	t.Helper()
	g, err := l.Gate(t.Context(), key)
	if err != nil {
		t.Fatalf("gate of %s: %v", key, err)
	}
	return g
}

// wantLine checks the ids behind the gate of key.
func wantLine(t *testing.T, l Lot, key string, from, to int) {
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

func parksInOrder(t *testing.T, l Lot) {
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

func parksOnce(t *testing.T, l Lot) {
	park(t, l, "k", closing, events("k", 1, 4)...)
	park(t, l, "k", nil, events("k", 3, 6)...)
	park(t, l, "k", closing, events("k", 1, 6)...)
	wantLine(t, l, "k", 1, 6)
	if g := gate(t, l, "k"); g.Events != 6 {
		t.Errorf("gate counts %d events, want 6", g.Events)
	}
}

func parksMany(t *testing.T, l Lot) {
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

func openGateTakesNothing(t *testing.T, l Lot) {
	if err := l.Park(t.Context(), "k", events("k", 1, 2), nil); !errors.Is(err, relay.ErrGateOpen) {
		t.Errorf("park: %v, want ErrGateOpen", err)
	}
	wantLine(t, l, "k", 1, 0)
	if _, err := l.Gate(t.Context(), "k"); !fault.Is(err, fault.NotFound) {
		t.Errorf("gate: %v, want not found", err)
	}
}

func guardsByVersion(t *testing.T, l Lot) {
	park(t, l, "k", closing, event("k", 1))
	old := gate(t, l, "k")
	fresh := old
	fresh.Attempts, fresh.Error, fresh.TriedAt = 3, "still too large", at
	fresh.Claim = &relay.Claim{Owner: "me", Token: "t", Beat: 7}
	stored, err := l.Update(t.Context(), fresh)
	if err != nil || stored.Version == old.Version {
		t.Fatalf("update: %v, version %s after %s", err, stored.Version, old.Version)
	}
	if g := gate(t, l, "k"); g.Attempts != 3 || g.Error != "still too large" || !g.TriedAt.Equal(at) || g.Claim == nil || *g.Claim != *fresh.Claim {
		t.Errorf("gate %+v, want the update", g)
	}
	for name, err := range map[string]error{
		"update": second(l.Update(t.Context(), old)),
		"remove": second(l.Remove(t.Context(), old, []string{"k-e1"}, nil)),
		"open":   l.Open(t.Context(), old),
	} {
		if !fault.Is(err, fault.PreconditionFailed) {
			t.Errorf("%s of an old version: %v, want precondition failed", name, err)
		}
	}
	wantLine(t, l, "k", 1, 1)
	park(t, l, "k", nil, event("k", 2))
	if err := l.Open(t.Context(), stored); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("open after an event came: %v, want precondition failed", err)
	}
}

func second(_ relay.Gate, err error) error { return err }

func removesFromTheFront(t *testing.T, l Lot) {
	park(t, l, "k", closing, events("k", 1, 5)...)
	g, err := l.Remove(t.Context(), gate(t, l, "k"), []string{"k-e1", "k-e2"}, nil)
	if err != nil {
		t.Fatalf("remove: %v", err)
	}
	park(t, l, "k", nil, event("k", 6))
	wantLine(t, l, "k", 3, 6)
	if g.Events != 3 {
		t.Errorf("gate counts %d events after the removal, want 3", g.Events)
	}
}

// openingLosesNothing lets an owner park while a drainer empties and opens: whatever
// was parked must have been seen by the drainer, whatever was not is the owner's to send.
func openingLosesNothing(t *testing.T, l Lot) {
	const total = 60
	park(t, l, "k", closing, event("k", 1))
	sent := make(chan int, total)
	var owner sync.WaitGroup
	owner.Go(func() {
		for n := 2; n <= total; n++ {
			switch err := l.Park(t.Context(), "k", []relay.ParkedEvent{event("k", n)}, nil); {
			case errors.Is(err, relay.ErrGateOpen):
				sent <- n
			case err != nil:
				t.Errorf("park %d: %v", n, err)
			}
		}
	})
	drained := 0
	for open := false; !open; {
		g := gate(t, l, "k")
		line, err := l.First(t.Context(), "k", 10)
		if err != nil {
			t.Fatalf("first: %v", err)
		}
		if len(line) == 0 {
			err := l.Open(t.Context(), g)
			if open = err == nil; err != nil && !fault.Is(err, fault.PreconditionFailed) {
				t.Fatalf("open: %v", err)
			}
			continue
		}
		var ids []string
		for _, e := range line {
			ids = append(ids, e.ID)
		}
		if _, err := l.Remove(t.Context(), g, ids, nil); err == nil {
			drained += len(ids)
		} else if !fault.Is(err, fault.PreconditionFailed) {
			t.Fatalf("remove: %v", err)
		}
	}
	owner.Wait()
	close(sent)
	next := drained + 1
	for n := range sent {
		if n != next {
			t.Fatalf("the owner sent %d where %d comes next", n, next)
		}
		next++
	}
	if next != total+1 {
		t.Errorf("%d drained, then sent up to %d, want all of %d", drained, next-1, total)
	}
}

func intentReaches(t *testing.T, l Lot) {
	park(t, l, "k", closing, event("k", 1))
	park(t, l, "other", closing, event("other", 1))
	if _, err := l.SetIntent(t.Context(), "none", relay.Intent{Verb: relay.VerbRetry}); !fault.Is(err, fault.NotFound) {
		t.Errorf("intent without a gate: %v, want not found", err)
	}
	intent := relay.Intent{Verb: relay.VerbSkip, Event: "k-e1", By: "ann", Note: "known", At: at}
	before := gate(t, l, "k")
	if _, err := l.SetIntent(t.Context(), "k", intent); err != nil {
		t.Fatalf("set intent: %v", err)
	}
	if _, err := l.Update(t.Context(), before); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("update of the gate before the intent: %v, want precondition failed", err)
	}
	gates, err := l.Intents(t.Context())
	if err != nil || len(gates) != 1 || gates[0].Key != "k" || gates[0].Intent == nil || *gates[0].Intent != intent {
		t.Fatalf("intents %+v, %v; want the one", gates, err)
	}
	gates[0].Intent = nil
	if _, err := l.Update(t.Context(), gates[0]); err != nil {
		t.Fatalf("update: %v", err)
	}
	if gates, err := l.Intents(t.Context()); err != nil || len(gates) != 0 {
		t.Errorf("intents %+v, %v; want none", gates, err)
	}
}

func skipLeavesARecord(t *testing.T, l Lot) {
	park(t, l, "k", closing, events("k", 1, 3)...)
	first, err := l.First(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	record := &relay.Skipped{Event: first[0], Intent: relay.Intent{Verb: relay.VerbSkip, Event: "k-e1", By: "ann", Note: "known", At: at}}
	if _, err := l.Remove(t.Context(), gate(t, l, "k"), []string{"k-e1"}, record); err != nil {
		t.Fatalf("remove: %v", err)
	}
	wantLine(t, l, "k", 2, 3)
	got, err := l.Skipped(t.Context(), "k")
	if err != nil || len(got) != 1 || got[0].Event.ID != "k-e1" || got[0].Intent != record.Intent || string(got[0].Event.Document) != string(first[0].Document) {
		t.Errorf("records %+v, %v; want the skipped event with the intent", got, err)
	}
}
