package parkedtest

import (
	"fmt"
	"slices"

	"feedbox/application/relay"
)

// progressIsDone parks events again that were accepted before the gate closed. A new owner does
// so if its predecessor stopped after parking and before its checkpoint.
func progressIsDone(s suite) {
	at5 := closing
	at5.Event, at5.Progress = "k-e5", relay.Progress{Sequence: 4, LSN: 4}
	s.park(&at5, event(5))
	done := s.park(nil, events(1, 6)...)
	if got := fmt.Sprint(idsOf(done.Parked), idsOf(done.Existing)); got != "[k-e6] [k-e5]" {
		s.Errorf("parked, and parked before: %s; want 6, and 5", got)
	}
	s.want("k-e5", "k-e6")
	if done := s.park(&at5, events(1, 4)...); len(done.Parked)+len(done.Existing) != 0 {
		s.Errorf("parking %+v, want nothing", done)
	}
	s.want("k-e5", "k-e6")

	// A low sequence alone proves nothing: an event that was committed later is new.
	late, unplaced := event(2), event(3)
	late.ID, late.LSN = "k-late", 7
	unplaced.ID, unplaced.LSN = "k-unplaced", 0
	s.park(nil, late, unplaced)
	s.want("k-late", "k-unplaced", "k-e5", "k-e6")
}

// closesForDoneEvent closes a gate for an event that was accepted before.
func closesForDoneEvent(s suite) {
	at3 := closing
	at3.Progress = relay.Progress{Sequence: 4, LSN: 4}
	if done := s.park(&at3, event(3)); len(done.Parked)+len(done.Existing) != 0 {
		s.Errorf("parking %+v, want nothing", done)
	}
	if g := s.gate(); g.Events != 0 || g.Closing.Event != closing.Event {
		s.Errorf("gate %+v, want it closed without parked events", g)
	}
}

// removedIsDone parks events again that were sent or skipped while the gate is closed.
func removedIsDone(s suite) {
	s.park(&closing, events(1, 200)...)
	g := must(s.store.Remove(s.Context(), s.gate(), events(1, 1), &relay.Skipped{Event: event(1), Intent: skip}))(s)
	g = s.remove(g, events(2, 91))
	want := relay.Progress{Sequence: 91, LSN: 91}
	if stored := s.gate(); g.Progress != want || stored.Progress != want {
		s.Errorf("progress %+v, stored %+v, want %+v", g.Progress, stored.Progress, want)
	}
	s.park(nil, events(1, 201)...)
	s.want(idsOf(events(92, 201))...)
}

// ordersBySequence parks the events of a transaction in another order, as the feed may return
// them.
func ordersBySequence(s suite) {
	s.park(&closing, event(2))
	s.park(nil, event(12), event(9))
	s.park(nil, event(1))
	s.want("k-e1", "k-e2", "k-e9", "k-e12")
	first := s.first(1)
	if !slices.Equal(idsOf(first), []string{"k-e1"}) {
		s.Fatalf("first %v, want the lowest sequence", idsOf(first))
	}
	s.remove(s.gate(), first)
	s.want("k-e2", "k-e9", "k-e12")
}

// unknownKeepsItsPlace parks events without sequences.
func unknownKeepsItsPlace(s suite) {
	unknown := func(id string) relay.ParkedEvent {
		e := event(3)
		e.ID, e.Sequence = id, 0
		return e
	}
	s.park(&closing, unknown("k-first"))
	s.park(nil, event(5), unknown("k-after-5"), unknown("k-after-that"), event(6), unknown("k-after-6"))
	s.park(nil, event(1<<40), unknown("k-last"))
	same := event(5)
	same.ID = "k-also-5"
	s.park(nil, event(4), unknown("k-after-4"), same)
	s.park(nil, unknown("k-after-5")) // parked already
	s.want("k-first", "k-e4", "k-after-4", "k-e5", "k-after-5", "k-after-that", "k-also-5", "k-e6", "k-after-6", "k-e1099511627776", "k-last")
}

// autoHasIntent closes a gate automatically, for an event that waited for the broker too long.
func autoHasIntent(s suite) {
	waits := relay.Closing{Event: "k-e1", Reason: "busy", At: at, Auto: true}
	s.park(&waits, event(1))
	s.parkOther()
	gates := s.intents()
	if len(gates) != 1 || gates[0].Closing != waits || gates[0].EffectiveIntent() == nil || gates[0].EffectiveIntent().Verb != relay.VerbRetry {
		s.Fatalf("intents %+v, want the retry of k", gates)
	}
	gates[0].Closing = closing
	must(s.store.Update(s.Context(), gates[0]))(s)
	if gates := s.intents(); len(gates) != 0 {
		s.Errorf("intents %+v, want none once an event was refused", gates)
	}
}
