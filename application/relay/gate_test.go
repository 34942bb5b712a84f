package relay_test

import (
	"testing"

	"feedbox/application/relay"
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

// What was taken away is done, also if a later one has a lower LSN, as after a merge.
func TestProgressDoesNotFallBack(t *testing.T) {
	g := relay.NewGate("a", relay.Closing{})
	g.Release([]relay.ParkedEvent{{Sequence: 5, LSN: 9}, {Sequence: 6, LSN: 3}, {LSN: 20}})
	if want := (relay.Progress{Sequence: 6, LSN: 9}); g.Progress != want {
		t.Errorf("progress %+v, want %+v", g.Progress, want)
	}
}
