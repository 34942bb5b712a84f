package parkedtest

import (
	"bytes"
	"errors"
	"sync"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

func guardsByVersion(s suite) {
	s.park(&closing, event(1))
	old := s.gate()
	fresh := old
	fresh.Attempts, fresh.Error, fresh.TriedAt = 3, "still too large", at
	stored := must(s.store.Update(s.Context(), fresh))(s)
	if stored.Version == old.Version {
		s.Fatalf("an update left version %s", old.Version)
	}
	if g := s.gate(); g.Attempts != 3 || g.Error != "still too large" || !g.TriedAt.Equal(at) {
		s.Errorf("gate %+v, want the update", g)
	}
	_, update := s.store.Update(s.Context(), old)
	_, remove := s.store.Remove(s.Context(), old, events(1, 1), nil)
	for name, err := range map[string]error{"update": update, "remove": remove, "open": s.store.Open(s.Context(), old)} {
		if !fault.Is(err, fault.PreconditionFailed) {
			s.Errorf("%s of an old version: %v, want precondition failed", name, err)
		}
	}
	s.want("k-e1")
	s.park(nil, event(2))
	if err := s.store.Open(s.Context(), stored); !fault.Is(err, fault.PreconditionFailed) {
		s.Errorf("open after an event was parked: %v, want precondition failed", err)
	}
}

func removesFromTheFront(s suite) {
	s.park(&closing, events(1, 5)...)
	g := s.remove(s.gate(), events(1, 2))
	if g.Events != 3 {
		s.Errorf("gate counts %d events after the removal, want 3", g.Events)
	}
	s.park(nil, event(6))
	s.want(idsOf(events(3, 6))...)
}

// replacesDocuments replaces one document with the intent of the operator. The replacement of a gate
// that was changed since has no effect.
func replacesDocuments(s suite) {
	s.park(&closing, events(1, 3)...)
	old := s.gate()
	e := s.first(3)[1]
	e.Document = []byte(`{"id":"k-e2","corrected":"<b>"}`)
	with := old
	with.Intent = &relay.Intent{Verb: relay.VerbRetry, By: "ann", Note: "corrected", At: at}
	stored := must(s.store.Replace(s.Context(), with, e))(s)
	if stored.Version == old.Version || stored.Events != 3 || stored.Intent == nil || stored.Intent.By != "ann" {
		s.Errorf("gate %+v, want the intent and 3 events in another version than %s", stored, old.Version)
	}
	late := e
	late.Document = []byte(`{"id":"k-e2","late":true}`)
	if _, err := s.store.Replace(s.Context(), old, late); !fault.Is(err, fault.PreconditionFailed) {
		s.Errorf("replacement for an old version of the gate: %v, want precondition failed", err)
	}
	line := s.first(3)
	want := events(1, 3)
	want[1].Document = e.Document
	for i, e := range line {
		if e.ID != want[i].ID || !bytes.Equal(e.Document, want[i].Document) || !e.ParkedAt.Equal(at) {
			s.Errorf("event %d: %s with %s", i+1, e.ID, e.Document)
		}
	}
}

// openingLosesNothing lets an owner park while a drainer empties and opens the gate. The drainer
// must have seen every parked event, and the owner sends the others after it.
func openingLosesNothing(s suite) {
	const total = 60
	s.park(&closing, event(1))
	var sent []int
	var owner sync.WaitGroup
	owner.Go(func() {
		for n := 2; n <= total; n++ {
			switch _, err := s.store.Park(s.Context(), "k", events(n, n), nil); {
			case errors.Is(err, relay.ErrGateOpen):
				sent = append(sent, n)
			case err != nil:
				s.Errorf("park %d: %v", n, err)
			}
		}
	})
	drained := 0
	for open := false; !open; {
		g, line := s.gate(), s.first(10)
		var err error
		if open = len(line) == 0; open {
			err = s.store.Open(s.Context(), g)
		} else {
			_, err = s.store.Remove(s.Context(), g, line, nil)
		}
		switch {
		case err == nil:
			drained += len(line)
		case fault.Is(err, fault.PreconditionFailed):
			open = false
		default:
			s.Fatalf("remove or open: %v", err)
		}
	}
	owner.Wait()
	for i, n := range sent {
		if n != drained+1+i {
			s.Fatalf("the owner sent %d, want %d next", n, drained+1+i)
		}
	}
	if drained+len(sent) != total {
		s.Errorf("%d drained, then %d sent, want all of %d", drained, len(sent), total)
	}
}

func intentReaches(s suite) {
	s.park(&closing, event(1))
	s.parkOther()
	if _, err := s.store.SetIntent(s.Context(), "none", relay.Intent{Verb: relay.VerbRetry}); !fault.Is(err, fault.NotFound) {
		s.Errorf("intent without a gate: %v, want not found", err)
	}
	before := s.gate()
	must(s.store.SetIntent(s.Context(), "k", skip))(s)
	if _, err := s.store.Update(s.Context(), before); !fault.Is(err, fault.PreconditionFailed) {
		s.Errorf("update of the gate before the intent: %v, want precondition failed", err)
	}
	gates := s.intents()
	if len(gates) != 1 || gates[0].Key != "k" || gates[0].Intent == nil || *gates[0].Intent != skip {
		s.Fatalf("intents %+v, want the one", gates)
	}
	gates[0].Intent = nil
	must(s.store.Update(s.Context(), gates[0]))(s)
	if gates := s.intents(); len(gates) != 0 {
		s.Errorf("intents %+v, want none", gates)
	}
}

func skipLeavesARecord(s suite) {
	s.park(&closing, events(1, 3)...)
	first := s.first(1)
	must(s.store.Remove(s.Context(), s.gate(), first, &relay.Skipped{Event: first[0], Intent: skip}))(s)
	s.want("k-e2", "k-e3")
	got := must(s.store.Skipped(s.Context(), "k"))(s)
	if len(got) != 1 || got[0].Event.ID != "k-e1" || got[0].Intent != skip || !bytes.Equal(got[0].Event.Document, first[0].Document) {
		s.Errorf("records %+v, want the skipped event with the intent", got)
	}
	if got := must(s.store.Skipped(s.Context(), "other"))(s); len(got) != 0 {
		s.Errorf("records of another key: %+v", got)
	}
	asked := []relay.EventRef{{Key: "k", ID: "k-e2"}, {Key: "k", ID: "k-e1"}, {Key: "other", ID: "k-e1"}}
	if got := must(s.store.SkippedAmong(s.Context(), asked))(s); len(got) != 1 || !got[asked[1]] {
		s.Errorf("skipped among %v: %v, want the second", asked, got)
	}
	if got := must(s.store.SkippedAmong(s.Context(), nil))(s); len(got) != 0 {
		s.Errorf("skipped among none: %v", got)
	}
}

// skippedIsParkedAgain parks an event whose gate was opened after it was skipped: the feed is read again from
// an earlier place, and the event is refused again. A later retry changes nothing in the record.
func skippedIsParkedAgain(s suite) {
	records := func(want int, position int64) {
		s.Helper()
		got := must(s.store.Skipped(s.Context(), "k"))(s)
		if len(got) != want || want > 0 && (got[0].Event.ID != "k-e1" || got[0].Event.Position != position || !bytes.Equal(got[0].Event.Document, event(1).Document)) {
			s.Errorf("records %+v, want %d of the skipped event at %d", got, want, position)
		}
	}
	for n := range 3 {
		s.park(&closing, event(1))
		s.want("k-e1")
		first := s.first(1)
		records(min(n, 1), first[0].Position) // the place is the same behind each gate
		g := must(s.store.Remove(s.Context(), s.gate(), first, &relay.Skipped{Event: first[0], Intent: skip}))(s)
		if err := s.store.Open(s.Context(), g); err != nil {
			s.Fatal(err)
		}
		records(1, first[0].Position)
	}
	for range 3 {
		s.park(&closing, event(1))
		s.want("k-e1")
		first := s.first(1)
		corrected := first[0]
		corrected.Document = []byte(`{"id":"k-e1","corrected":true}`)
		g := must(s.store.Replace(s.Context(), s.gate(), corrected))(s)
		if err := s.store.Open(s.Context(), s.remove(g, first)); err != nil {
			s.Fatal(err)
		}
		records(1, first[0].Position)
	}
}
