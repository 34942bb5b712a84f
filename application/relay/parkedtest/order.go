package parkedtest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"feedbox/application/relay"
)

// progressCoversEarlierEvents parks events again that were accepted before the gate closed. A new
// owner does so if its predecessor stopped after parking and before its checkpoint.
func progressCoversEarlierEvents(s suite) {
	s.park(&closing, event(5))
	done := s.park(nil, events(1, 6)...)
	if got := fmt.Sprint(idsOf(done.Parked), idsOf(done.Existing)); got != "[k-e6] []" {
		s.Errorf("parked, and parked before: %s; want 6 alone", got)
	}
	s.want("k-e5", "k-e6")
	if g := s.gate(); g.Progress != event(6).Progress {
		s.Errorf("progress %+v, want the place of 6", g.Progress)
	}

	// A low LSN alone proves nothing: an event that was committed later is new.
	late, unplaced := event(2), event(3)
	late.ID, late.Progress.At = "k-late", at.Add(time.Second)
	unplaced.ID, unplaced.Progress = "k-unplaced", relay.Progress{}
	s.park(nil, late, unplaced)
	s.want("k-late", "k-unplaced", "k-e5", "k-e6")
}

// progressNeedsNoSequence compares events by LSN and by the ordinal in their transaction.
func progressNeedsNoSequence(s suite) {
	s.park(&closing, placed("k-c", 7, 2))
	done := s.park(nil, placed("k-z", 6, 1), placed("k-b", 7, 1), placed("k-c", 7, 2), placed("k-a", 7, 3), placed("k-d", 8, 1))
	if got := fmt.Sprint(idsOf(done.Parked)); got != "[k-a k-d]" {
		s.Errorf("parked %s, want a and d", got)
	}
	s.want("k-c", "k-a", "k-d")
}

// progressEndsWithHistory parks the events of a container that was restored, or whose feed was
// restarted: the LSNs of the old history are used again.
func progressEndsWithHistory(s suite) {
	s.park(&closing, event(5))
	restored := events(3, 5)
	for i := range restored {
		restored[i].Progress.History = "h2"
	}
	restored[0].ID = "k-new"
	done := s.park(nil, restored...)
	if got := fmt.Sprint(idsOf(done.Parked), idsOf(done.Existing)); got != "[k-new k-e4] [k-e5]" {
		s.Errorf("parked, and parked before: %s; want new and 4, and 5", got)
	}
	s.want("k-new", "k-e4", "k-e5")
}

// removedIsCovered parks events again that were sent or skipped while the gate is closed.
func removedIsCovered(s suite) {
	s.park(&closing, events(1, 200)...)
	g := must(s.store.Remove(s.Context(), s.gate(), events(1, 1), &relay.Skipped{Event: event(1), Intent: skip}))(s)
	g = s.remove(g, events(2, 91))
	want := event(200).Progress
	if stored := s.gate(); g.Progress != want || stored.Progress != want {
		s.Errorf("progress %+v, stored %+v, want %+v", g.Progress, stored.Progress, want)
	}
	s.park(nil, events(1, 201)...)
	s.want(idsOf(events(92, 201))...)
}

// ordersBySequence parks later events first, as if the feed were restarted in between.
func ordersBySequence(s suite) {
	s.park(&closing, event(2))
	first, later := event(1), []relay.ParkedEvent{event(9), event(12)}
	first.Progress.History = "h2"
	s.park(nil, later[1])
	later[0].Progress.History = "h2"
	s.park(nil, first, later[0])
	s.want("k-e1", "k-e2", "k-e9", "k-e12")
	line := s.first(1)
	if !slices.Equal(idsOf(line), []string{"k-e1"}) {
		s.Fatalf("first %v, want the lowest sequence", idsOf(line))
	}
	s.remove(s.gate(), line)
	s.want("k-e2", "k-e9", "k-e12")
}

// firstIsBoundedByBytes reads large events.
func firstIsBoundedByBytes(s suite) {
	const size = 100 << 10
	many := events(1, 9)
	for i := range many {
		many[i].Document = fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","filler":%q}`, many[i].ID, bytes.Repeat([]byte("x"), size))
	}
	s.park(&closing, many...)
	for maxBytes, n := range map[int]int{1: 1, size: 1, 2 * size: 2, 3 * len(many[0].Document): 3, 5*size - 1: 5, 1 << 30: 9} {
		got := must(s.store.First(s.Context(), "k", 9, maxBytes))(s)
		if !slices.Equal(idsOf(got), idsOf(many[:n])) || !bytes.Equal(got[n-1].Document, many[n-1].Document) {
			s.Errorf("up to %d bytes: %v, want %d events", maxBytes, idsOf(got), n)
		}
	}
}

// unknownKeepsItsPlace parks events without sequences.
func unknownKeepsItsPlace(s suite) {
	unknown := func(id string) relay.ParkedEvent {
		e := event(3)
		e.ID, e.Sequence, e.Progress = id, 0, relay.Progress{}
		return e
	}
	s.park(&closing, unknown("k-first"))
	s.park(nil, event(5), unknown("k-after-5"), unknown("k-after-that"), event(6), unknown("k-after-6"))
	s.park(nil, event(1<<40), unknown("k-last"))
	before, same := event(4), event(5)
	same.ID, same.Progress, before.Progress = "k-also-5", relay.Progress{}, relay.Progress{}
	s.park(nil, before, unknown("k-after-4"), same)
	s.park(nil, unknown("k-after-5")) // parked already
	s.want("k-first", "k-e4", "k-after-4", "k-e5", "k-after-5", "k-after-that", "k-also-5", "k-e6", "k-after-6", "k-e1099511627776", "k-last")
}

// heldBehindTheGateOfACaller parks events for callers of which one has read the gate before it was opened and
// closed again.
func heldBehindTheGateOfACaller(s suite) {
	s.park(&closing, event(1))
	read := s.gate().Closing
	late, again := read, closing
	late.At, again.Event = read.At.Add(-time.Millisecond), "k-e0"
	for n, c := range []*relay.Closing{&late, &again, &read} {
		e := event(2 + n)
		e.Closing = c
		if done := s.park(nil, e); len(done.Parked)+len(done.Existing) != n/2 {
			s.Errorf("closing %+v: %+v", c, done)
		}
	}
	s.want("k-e1", "k-e4")
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
