package parkedtest

import (
	"fmt"
	"slices"

	"feedbox/application/relay"
)

// progressIsDone brings events again that were accepted before the gate closed, as a new
// owner does whose predecessor stopped between parking and checkpoint.
func progressIsDone(l lot) {
	at5 := closing
	at5.Event, at5.Progress = "k-e5", relay.Progress{Sequence: 4, LSN: 4}
	l.park(&at5, event(5))
	done := l.park(nil, events(1, 6)...)
	if got := fmt.Sprint(idsOf(done.Parked), idsOf(done.Before)); got != "[k-e6] [k-e5]" {
		l.Errorf("parked, and there before: %s; want 6, and 5", got)
	}
	l.want("k-e5", "k-e6")
	if done := l.park(&at5, events(1, 4)...); len(done.Parked)+len(done.Before) != 0 {
		l.Errorf("parking %+v, want nothing", done)
	}
	l.want("k-e5", "k-e6")

	// A low sequence alone shows nothing: an event that was committed later is new.
	late, untold := event(2), event(3)
	late.ID, late.LSN = "k-late", 7
	untold.ID, untold.LSN = "k-untold", 0
	l.park(nil, late, untold)
	l.want("k-late", "k-untold", "k-e5", "k-e6")
}

// closesForWhatIsDone closes a gate for an event that was accepted before.
func closesForWhatIsDone(l lot) {
	at3 := closing
	at3.Progress = relay.Progress{Sequence: 4, LSN: 4}
	if done := l.park(&at3, event(3)); len(done.Parked)+len(done.Before) != 0 {
		l.Errorf("parking %+v, want nothing", done)
	}
	if g := l.gate(); g.Events != 0 || g.Closing.Event != closing.Event {
		l.Errorf("gate %+v, want it closed with nothing behind it", g)
	}
}

// removedIsDone brings events again that were sent or left out while the gate is closed.
func removedIsDone(l lot) {
	l.park(&closing, events(1, 200)...)
	g := must(l.store.Remove(l.Context(), l.gate(), events(1, 1), &relay.Skipped{Event: event(1), Intent: skip}))(l)
	g = l.remove(g, events(2, 91))
	want := relay.Progress{Sequence: 91, LSN: 91}
	if stored := l.gate(); g.Progress != want || stored.Progress != want {
		l.Errorf("progress %+v, stored %+v, want %+v", g.Progress, stored.Progress, want)
	}
	l.park(nil, events(1, 201)...)
	l.want(idsOf(events(92, 201))...)
}

// ordersBySequence parks the events of a transaction in the order in which the feed shows
// them, which is any.
func ordersBySequence(l lot) {
	l.park(&closing, event(2))
	l.park(nil, event(12), event(9))
	l.park(nil, event(1))
	l.want("k-e1", "k-e2", "k-e9", "k-e12")
	first := l.first(1)
	if !slices.Equal(idsOf(first), []string{"k-e1"}) {
		l.Fatalf("first %v, want the lowest sequence", idsOf(first))
	}
	l.remove(l.gate(), first)
	l.want("k-e2", "k-e9", "k-e12")
}

// unknownKeepsItsPlace parks events that do not tell their sequences.
func unknownKeepsItsPlace(l lot) {
	unknown := func(id string) relay.ParkedEvent {
		e := event(3)
		e.ID, e.Sequence = id, 0
		return e
	}
	l.park(&closing, unknown("k-first"))
	l.park(nil, event(5), unknown("k-behind-5"), unknown("k-behind-that"), event(6), unknown("k-behind-6"))
	l.park(nil, event(1<<40), unknown("k-last"))
	same := event(5)
	same.ID = "k-also-5"
	l.park(nil, event(4), unknown("k-behind-4"), same)
	l.park(nil, unknown("k-behind-5")) // is there already
	l.want("k-first", "k-e4", "k-behind-4", "k-e5", "k-behind-5", "k-behind-that", "k-also-5", "k-e6", "k-behind-6", "k-e1099511627776", "k-last")
}

// autoIsWanted closes a gate behind which events wait for the broker alone.
func autoIsWanted(l lot) {
	waits := relay.Closing{Event: "k-e1", Reason: "busy", At: at, Auto: true}
	l.park(&waits, event(1))
	l.parkOther()
	gates := l.intents()
	if len(gates) != 1 || gates[0].Closing != waits || gates[0].Wanted() == nil || gates[0].Wanted().Verb != relay.VerbRetry {
		l.Fatalf("intents %+v, want the retry of k", gates)
	}
	gates[0].Closing = closing
	must(l.store.Update(l.Context(), gates[0]))(l)
	if gates := l.intents(); len(gates) != 0 {
		l.Errorf("intents %+v, want none once an event was refused", gates)
	}
}
