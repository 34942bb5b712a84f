package parkedtest

import (
	"slices"
	"testing"

	"feedbox/application/relay"
)

// ids are those behind the gate of k, in order.
func ids(t *testing.T, l Store) []string {
	t.Helper()
	line, err := l.First(t.Context(), "k", 1000)
	if err != nil {
		t.Fatalf("first: %v", err)
	}
	var got []string
	for _, e := range line {
		got = append(got, e.ID)
	}
	return got
}

func wantIDs(t *testing.T, l Store, want ...string) {
	t.Helper()
	if got := ids(t, l); !slices.Equal(got, want) {
		t.Fatalf("behind the gate stand %v, want %v", got, want)
	}
	if g := gate(t, l, "k"); g.Events != int64(len(want)) {
		t.Errorf("the gate counts %d events, want %d", g.Events, len(want))
	}
}

// progressIsDone brings events again that were accepted before the gate closed, as a new
// owner does whose predecessor stopped between parking and checkpoint.
func progressIsDone(t *testing.T, l Store) {
	at5 := *closing
	at5.Event, at5.Progress = "k-e5", relay.Progress{Sequence: 4, LSN: 4}
	park(t, l, "k", &at5, event("k", 5))
	done := park(t, l, "k", nil, events("k", 1, 6)...)
	if len(done.Parked) != 1 || done.Parked[0].ID != "k-e6" || len(done.Before) != 1 || done.Before[0].ID != "k-e5" {
		t.Errorf("parking %+v, want 6 parked, 5 there before and nothing else", done)
	}
	wantIDs(t, l, "k-e5", "k-e6")
	if done := park(t, l, "k", &at5, events("k", 1, 4)...); len(done.Parked)+len(done.Before) != 0 {
		t.Errorf("parking %+v, want nothing", done)
	}
	wantIDs(t, l, "k-e5", "k-e6")

	// A low sequence alone shows nothing: an event that was committed later is new.
	late := event("k", 2)
	late.ID, late.LSN = "k-late", 7
	untold := event("k", 3)
	untold.ID, untold.LSN = "k-untold", 0
	park(t, l, "k", nil, late, untold)
	wantIDs(t, l, "k-late", "k-untold", "k-e5", "k-e6")
}

// removedIsDone brings events again that were sent or left out while the gate is closed.
func removedIsDone(t *testing.T, l Store) {
	park(t, l, "k", closing, events("k", 1, 200)...)
	g, err := l.Remove(t.Context(), gate(t, l, "k"), events("k", 1, 1), &relay.Skipped{Event: event("k", 1), Intent: relay.Intent{Verb: relay.VerbSkip, At: at}})
	if err != nil {
		t.Fatalf("remove: %v", err)
	}
	if g, err = l.Remove(t.Context(), g, events("k", 2, 195), nil); err != nil {
		t.Fatalf("remove: %v", err)
	}
	want := relay.Progress{Sequence: 195, LSN: 195}
	if stored := gate(t, l, "k"); g.Progress != want || stored.Progress != want {
		t.Errorf("progress %+v, stored %+v, want %+v", g.Progress, stored.Progress, want)
	}
	park(t, l, "k", nil, events("k", 1, 201)...)
	wantIDs(t, l, "k-e196", "k-e197", "k-e198", "k-e199", "k-e200", "k-e201")
}

// ordersBySequence parks the events of a transaction in the order in which the feed shows
// them, which is any.
func ordersBySequence(t *testing.T, l Store) {
	two, one := event("k", 2), event("k", 1)
	park(t, l, "k", closing, two)
	park(t, l, "k", nil, event("k", 12), event("k", 9))
	park(t, l, "k", nil, one)
	wantIDs(t, l, "k-e1", "k-e2", "k-e9", "k-e12")
	first, err := l.First(t.Context(), "k", 1)
	if err != nil || len(first) != 1 || first[0].ID != "k-e1" {
		t.Fatalf("first %+v, %v; want the lowest sequence", first, err)
	}
	if _, err := l.Remove(t.Context(), gate(t, l, "k"), first, nil); err != nil {
		t.Fatalf("remove: %v", err)
	}
	wantIDs(t, l, "k-e2", "k-e9", "k-e12")
}

// unknownKeepsItsPlace parks events that do not tell their sequences.
func unknownKeepsItsPlace(t *testing.T, l Store) {
	unknown := func(id string) relay.ParkedEvent {
		e := event("k", 3)
		e.ID, e.Sequence = id, 0
		return e
	}
	park(t, l, "k", closing, unknown("k-first"))
	park(t, l, "k", nil, event("k", 5), unknown("k-behind-5"), unknown("k-behind-that"), event("k", 6), unknown("k-behind-6"))
	park(t, l, "k", nil, event("k", 1<<40), unknown("k-last"))
	same := event("k", 5)
	same.ID = "k-also-5"
	park(t, l, "k", nil, event("k", 4), unknown("k-behind-4"), same)
	wantIDs(t, l, "k-first", "k-e4", "k-behind-4", "k-e5", "k-behind-5", "k-behind-that", "k-also-5", "k-e6", "k-behind-6", "k-e1099511627776", "k-last")
	again := unknown("k-behind-5")
	park(t, l, "k", nil, again)
	if n := len(ids(t, l)); n != 11 {
		t.Errorf("%d events, want an unknown one that is there already to count once", n)
	}
}

// autoIsWanted closes a gate behind which events wait for the broker alone.
func autoIsWanted(t *testing.T, l Store) {
	waits := relay.Closing{Event: "k-e1", Reason: "busy", At: at, Auto: true}
	park(t, l, "k", &waits, event("k", 1))
	park(t, l, "other", closing, event("other", 1))
	gates, err := l.Intents(t.Context())
	if err != nil || len(gates) != 1 || gates[0].Closing != waits || gates[0].Wanted() == nil || gates[0].Wanted().Verb != relay.VerbRetry {
		t.Fatalf("intents %+v, %v; want the retry of k", gates, err)
	}
	gates[0].Closing = *closing
	if _, err := l.Update(t.Context(), gates[0]); err != nil {
		t.Fatalf("update: %v", err)
	}
	if gates, err := l.Intents(t.Context()); err != nil || len(gates) != 0 {
		t.Errorf("intents %+v, %v; want none once an event was refused", gates, err)
	}
}
