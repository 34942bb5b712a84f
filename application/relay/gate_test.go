package relay_test

import (
	"slices"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// However many events were ever put behind a gate, their sequences tell their order.
func TestALongLineIsInOrderOfSequence(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	first, second := relay.ParkedEvent{Sequence: 1}, relay.ParkedEvent{Sequence: 2}
	g.Admit(&second)
	g.Last += 1 << 20
	g.Admit(&first)
	if first.Position >= second.Position {
		t.Errorf("the first stands at %d, the second at %d", first.Position, second.Position)
	}
}

// An event without a sequence stands behind the one that came before it, also when others were
// taken away since.
func TestALineWithoutSequencesIsInOrderOfArrival(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	line := make([]relay.ParkedEvent, 4)
	for i := range line {
		g.Admit(&line[i])
		if i > 0 && line[i-1].Position >= line[i].Position {
			t.Errorf("event %d stands at %d, the next at %d", i-1, line[i-1].Position, line[i].Position)
		}
		if i < 2 {
			g.Release(line[:1])
		}
	}
}

// What was taken away is done, also if a later one has a lower LSN, as after a merge.
func TestProgressDoesNotFallBack(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	g.Release([]relay.ParkedEvent{{Sequence: 5, LSN: 9}, {Sequence: 6, LSN: 3}, {LSN: 20}})
	if want := (relay.Progress{Sequence: 6, LSN: 9}); g.Progress != want {
		t.Errorf("progress %+v, want %+v", g.Progress, want)
	}
}

// The first event that an owner sees of a key is refused: what lies before it was sent by
// another, and is not parked when the feed shows it again.
func TestWhatLiesBeforeTheFirstEventOfAnOwnershipIsDone(t *testing.T) {
	b, lot := &broker{fail: failing(errTooLarge, "a")}, parkedtest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	r.Handle(t.Context(), relay.Ownership{}, changes("a a5 5@4"))
	if err := r.Park(t.Context(), letter("a a5 5", 4, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a4 4@3", "a a5 5@4", "a a6 6@5")); failed != nil {
		t.Fatal(failed)
	}
	if ids := line(t, lot, "a"); !slices.Equal(ids, []string{"a5 too_large", "a6 held"}) {
		t.Errorf("parked %v", ids)
	}
}

// A gate tells why it is closed, how far its key has come and how many stand behind it.
func TestAGateIsCounted(t *testing.T) {
	at := time.Unix(9, 0)
	closing := relay.Closing{Event: "e", Reason: "busy", At: at, Auto: true, Progress: relay.Progress{Sequence: 4, LSN: 40}}
	g := relay.NewGate("a", closing)
	want := relay.Gate{Key: "a", Closing: closing, Progress: closing.Progress}
	want.Closing.Progress = relay.Progress{}
	if g != want {
		t.Errorf("new gate %+v, want %+v", g, want)
	}
	if intent := g.Wanted(); intent == nil || *intent != (relay.Intent{Verb: relay.VerbRetry, At: at}) {
		t.Errorf("wanted %+v, want a retry since it was closed", intent)
	}
	g.Intent = &relay.Intent{Verb: relay.VerbSkip}
	if g.Wanted() != g.Intent {
		t.Errorf("wanted %+v, want what the operator said", g.Wanted())
	}
	g.Intent = nil
	line := []relay.ParkedEvent{{Sequence: 5, LSN: 50}, {Sequence: 7, LSN: 60}, {Sequence: 6, LSN: 60}}
	for i := range line {
		g.Admit(&line[i])
	}
	g.Release(line[:1])
	want.Events, want.Last, want.Sequence, want.Progress = 2, 3, 6, relay.Progress{Sequence: 5, LSN: 50}
	if g != want {
		t.Errorf("gate %+v, want %+v", g, want)
	}
}

// Only what has both a sequence and an LSN that are done is done.
func TestWhatIsDoneIsNotAdmitted(t *testing.T) {
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

// What a new owner does not know of a key it does not make up.
func TestAnEventThatTellsNoPlaceProvesNoProgress(t *testing.T) {
	lot := parkedtest.NewMemory()
	r := newRelay(t, &broker{}, withLot(lot, relay.Options{}))
	for key, l := range map[string]relay.DeadLetter{
		"unread": letter("unread e ?", 7, errTooLarge), "unplaced": letter("unplaced e 5", 0, errTooLarge),
	} {
		if err := r.Park(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if g := gateOf(t, lot, key); g.Progress != (relay.Progress{}) {
			t.Errorf("%s: progress %+v, want none", key, g.Progress)
		}
	}
}
