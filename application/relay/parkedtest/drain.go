package parkedtest

import (
	"bytes"
	"errors"
	"sync"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

func guardsByVersion(l lot) {
	l.park(&closing, event(1))
	old := l.gate()
	fresh := old
	fresh.Attempts, fresh.Error, fresh.TriedAt = 3, "still too large", at
	stored := must(l.store.Update(l.Context(), fresh))(l)
	if stored.Version == old.Version {
		l.Fatalf("an update left version %s", old.Version)
	}
	if g := l.gate(); g.Attempts != 3 || g.Error != "still too large" || !g.TriedAt.Equal(at) {
		l.Errorf("gate %+v, want the update", g)
	}
	_, update := l.store.Update(l.Context(), old)
	_, remove := l.store.Remove(l.Context(), old, events(1, 1), nil)
	for name, err := range map[string]error{"update": update, "remove": remove, "open": l.store.Open(l.Context(), old)} {
		if !fault.Is(err, fault.PreconditionFailed) {
			l.Errorf("%s of an old version: %v, want precondition failed", name, err)
		}
	}
	l.want("k-e1")
	l.park(nil, event(2))
	if err := l.store.Open(l.Context(), stored); !fault.Is(err, fault.PreconditionFailed) {
		l.Errorf("open after an event came: %v, want precondition failed", err)
	}
}

func removesFromTheFront(l lot) {
	l.park(&closing, events(1, 5)...)
	g := l.remove(l.gate(), events(1, 2))
	if g.Events != 3 {
		l.Errorf("gate counts %d events after the removal, want 3", g.Events)
	}
	l.park(nil, event(6))
	l.want(idsOf(events(3, 6))...)
}

// openingLosesNothing lets an owner park while a drainer empties and opens: whatever
// was parked must have been seen by the drainer, whatever was not is the owner's to send.
func openingLosesNothing(l lot) {
	const total = 60
	l.park(&closing, event(1))
	var sent []int
	var owner sync.WaitGroup
	owner.Go(func() {
		for n := 2; n <= total; n++ {
			switch _, err := l.store.Park(l.Context(), "k", events(n, n), nil); {
			case errors.Is(err, relay.ErrGateOpen):
				sent = append(sent, n)
			case err != nil:
				l.Errorf("park %d: %v", n, err)
			}
		}
	})
	drained := 0
	for open := false; !open; {
		g, line := l.gate(), l.first(10)
		var err error
		if open = len(line) == 0; open {
			err = l.store.Open(l.Context(), g)
		} else {
			_, err = l.store.Remove(l.Context(), g, line, nil)
		}
		switch {
		case err == nil:
			drained += len(line)
		case fault.Is(err, fault.PreconditionFailed):
			open = false
		default:
			l.Fatalf("remove or open: %v", err)
		}
	}
	owner.Wait()
	for i, n := range sent {
		if n != drained+1+i {
			l.Fatalf("the owner sent %d where %d comes next", n, drained+1+i)
		}
	}
	if drained+len(sent) != total {
		l.Errorf("%d drained, then %d sent, want all of %d", drained, len(sent), total)
	}
}

func intentReaches(l lot) {
	l.park(&closing, event(1))
	l.parkOther()
	if _, err := l.store.SetIntent(l.Context(), "none", relay.Intent{Verb: relay.VerbRetry}); !fault.Is(err, fault.NotFound) {
		l.Errorf("intent without a gate: %v, want not found", err)
	}
	before := l.gate()
	must(l.store.SetIntent(l.Context(), "k", skip))(l)
	if _, err := l.store.Update(l.Context(), before); !fault.Is(err, fault.PreconditionFailed) {
		l.Errorf("update of the gate before the intent: %v, want precondition failed", err)
	}
	gates := l.intents()
	if len(gates) != 1 || gates[0].Key != "k" || gates[0].Intent == nil || *gates[0].Intent != skip {
		l.Fatalf("intents %+v, want the one", gates)
	}
	gates[0].Intent = nil
	must(l.store.Update(l.Context(), gates[0]))(l)
	if gates := l.intents(); len(gates) != 0 {
		l.Errorf("intents %+v, want none", gates)
	}
}

func skipLeavesARecord(l lot) {
	l.park(&closing, events(1, 3)...)
	first := l.first(1)
	must(l.store.Remove(l.Context(), l.gate(), first, &relay.Skipped{Event: first[0], Intent: skip}))(l)
	l.want("k-e2", "k-e3")
	got := must(l.store.Skipped(l.Context(), "k"))(l)
	if len(got) != 1 || got[0].Event.ID != "k-e1" || got[0].Intent != skip || !bytes.Equal(got[0].Event.Document, first[0].Document) {
		l.Errorf("records %+v, want the skipped event with the intent", got)
	}
}
