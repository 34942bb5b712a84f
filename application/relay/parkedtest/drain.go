package parkedtest

import (
	"errors"
	"sync"
	"testing"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

func guardsByVersion(t *testing.T, l Store) {
	park(t, l, "k", closing, event("k", 1))
	old := gate(t, l, "k")
	fresh := old
	fresh.Attempts, fresh.Error, fresh.TriedAt = 3, "still too large", at
	stored, err := l.Update(t.Context(), fresh)
	if err != nil || stored.Version == old.Version {
		t.Fatalf("update: %v, version %s after %s", err, stored.Version, old.Version)
	}
	if g := gate(t, l, "k"); g.Attempts != 3 || g.Error != "still too large" || !g.TriedAt.Equal(at) {
		t.Errorf("gate %+v, want the update", g)
	}
	for name, err := range map[string]error{
		"update": second(l.Update(t.Context(), old)),
		"remove": second(l.Remove(t.Context(), old, events("k", 1, 1), nil)),
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

func removesFromTheFront(t *testing.T, l Store) {
	park(t, l, "k", closing, events("k", 1, 5)...)
	g, err := l.Remove(t.Context(), gate(t, l, "k"), events("k", 1, 2), nil)
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
func openingLosesNothing(t *testing.T, l Store) {
	const total = 60
	park(t, l, "k", closing, event("k", 1))
	sent := make(chan int, total)
	var owner sync.WaitGroup
	owner.Go(func() {
		for n := 2; n <= total; n++ {
			switch _, err := l.Park(t.Context(), "k", []relay.ParkedEvent{event("k", n)}, nil); {
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
		if _, err := l.Remove(t.Context(), g, line, nil); err == nil {
			drained += len(line)
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

func intentReaches(t *testing.T, l Store) {
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

func skipLeavesARecord(t *testing.T, l Store) {
	park(t, l, "k", closing, events("k", 1, 3)...)
	first, err := l.First(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	record := &relay.Skipped{Event: first[0], Intent: relay.Intent{Verb: relay.VerbSkip, Event: "k-e1", By: "ann", Note: "known", At: at}}
	if _, err := l.Remove(t.Context(), gate(t, l, "k"), first, record); err != nil {
		t.Fatalf("remove: %v", err)
	}
	wantLine(t, l, "k", 2, 3)
	got, err := l.Skipped(t.Context(), "k")
	if err != nil || len(got) != 1 || got[0].Event.ID != "k-e1" || got[0].Intent != record.Intent || string(got[0].Event.Document) != string(first[0].Document) {
		t.Errorf("records %+v, %v; want the skipped event with the intent", got, err)
	}
}
