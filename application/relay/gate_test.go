package relay_test

import (
	"slices"
	"testing"

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
