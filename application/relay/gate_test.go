package relay_test

import (
	"testing"
	"time"

	"feedbox/application/relay"
)

// Sequences order parked events, however many were ever parked.
func TestSequenceOrdersManyParkedEvents(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	first, second := relay.ParkedEvent{Sequence: 1}, relay.ParkedEvent{Sequence: 2}
	g.Admit(&second)
	g.Arrivals += 1 << 20
	g.Admit(&first)
	if first.Position >= second.Position {
		t.Errorf("the first stands at %d, the second at %d", first.Position, second.Position)
	}
}

// An event without a sequence follows the one that arrived before it, even if others were removed
// since.
func TestArrivalOrdersEventsWithoutSequence(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	line := make([]relay.ParkedEvent, 4)
	for i := range line {
		g.Admit(&line[i])
		if i > 0 && line[i-1].Position >= line[i].Position {
			t.Errorf("event %d stands at %d, the next at %d", i-1, line[i-1].Position, line[i].Position)
		}
		if i < 2 {
			g.MarkDone(line[:1])
		}
	}
}

// Removed events stay done even if a later one has a lower LSN, as after a merge.
func TestProgressNeverDecreases(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	g.MarkDone([]relay.ParkedEvent{{Sequence: 5, LSN: 9}, {Sequence: 6, LSN: 3}, {LSN: 20}})
	if want := (relay.Progress{Sequence: 6, LSN: 9}); g.Progress != want {
		t.Errorf("progress %+v, want %+v", g.Progress, want)
	}
}

// A gate has its closing, its progress and the number of its parked events.
func TestGateCountsAndDefaultIntent(t *testing.T) {
	at := time.Unix(9, 0)
	closing := relay.Closing{Event: "e", Reason: "busy", At: at, Auto: true, Progress: relay.Progress{Sequence: 4, LSN: 40}}
	g := relay.NewGate("a", closing)
	want := relay.Gate{Key: "a", Closing: closing, Progress: closing.Progress}
	want.Closing.Progress = relay.Progress{}
	if g != want {
		t.Errorf("new gate %+v, want %+v", g, want)
	}
	if intent := g.EffectiveIntent(); intent == nil || *intent != (relay.Intent{Verb: relay.VerbRetry, At: at}) {
		t.Errorf("wanted %+v, want a retry since it was closed", intent)
	}
	g.Intent = &relay.Intent{Verb: relay.VerbSkip}
	if g.EffectiveIntent() != g.Intent {
		t.Errorf("wanted %+v, want what the operator said", g.EffectiveIntent())
	}
	g.Intent = nil
	line := []relay.ParkedEvent{{Sequence: 5, LSN: 50}, {Sequence: 7, LSN: 60}, {Sequence: 6, LSN: 60}}
	for i := range line {
		g.Admit(&line[i])
	}
	g.MarkDone(line[:1])
	want.Events, want.Arrivals, want.Sequence, want.Progress = 2, 3, 6, relay.Progress{Sequence: 5, LSN: 50}
	if g != want {
		t.Errorf("gate %+v, want %+v", g, want)
	}
}

// An event is done only if both its sequence and its LSN are within the progress.
func TestDoneEventsAreNotAdmitted(t *testing.T) {
	for e, done := range map[[2]int64]bool{ // sequence, LSN
		{4, 40}: true, {1, 1}: true, {5, 40}: false, {4, 41}: false, {5, 41}: false, {0, 40}: false, {4, 0}: false, {0, 0}: false, {-1, 40}: false, {4, -1}: false,
	} {
		g := relay.NewGate("a", relay.Closing{Progress: relay.Progress{Sequence: 4, LSN: 40}})
		before := g
		if admitted := g.Admit(&relay.ParkedEvent{Sequence: e[0], LSN: e[1]}); admitted == done || done && g != before {
			t.Errorf("sequence %d at LSN %d is admitted: %t, gate %+v", e[0], e[1], admitted, g)
		}
	}
}
