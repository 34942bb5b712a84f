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
			g.Events--
		}
	}
}

// A gate has its closing, its progress and the number of its parked events.
func TestGateCountsAndDefaultIntent(t *testing.T) {
	at := time.Unix(9, 0)
	closing := relay.Closing{Event: "e", Reason: "busy", At: at, Auto: true}
	g := relay.NewGate("a", closing)
	want := relay.Gate{Key: "a", Closing: closing}
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
	line := []relay.ParkedEvent{{Sequence: 5}, {Sequence: 7}, {Sequence: 6}}
	for i := range line {
		line[i].Progress = relay.Progress{History: "h", LSN: int64(i + 1)}
		g.Admit(&line[i])
	}
	want.Events, want.Arrivals, want.Sequence, want.Progress = 3, 3, 6, line[2].Progress
	if g != want {
		t.Errorf("gate %+v, want %+v", g, want)
	}
}

// An event is covered if its place is not after that of the gate, in the same history and not
// committed later. An event at an unknown place is always admitted and moves nothing.
func TestCoveredEventsAreNotAdmitted(t *testing.T) {
	at := time.Unix(9, 0)
	gate := relay.Progress{History: "h", LSN: 40, Ordinal: 2, Sequence: 7, Event: "m", At: at}
	with := func(change func(p *relay.Progress)) relay.Progress {
		p := gate
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		place   relay.Progress
		covered bool
	}{
		"same place":       {gate, true},
		"earlier LSN":      {relay.Progress{History: "h", LSN: 39, Ordinal: 9, Sequence: 99, Event: "z"}, true},
		"later LSN":        {relay.Progress{History: "h", LSN: 41, Ordinal: 1, Sequence: 1, Event: "a"}, false},
		"earlier ordinal":  {with(func(p *relay.Progress) { p.Ordinal, p.Sequence, p.Event = 1, 9, "z" }), true},
		"later ordinal":    {with(func(p *relay.Progress) { p.Ordinal, p.Sequence, p.Event = 3, 1, "a" }), false},
		"earlier sequence": {with(func(p *relay.Progress) { p.Sequence, p.Event = 6, "z" }), true},
		"later sequence":   {with(func(p *relay.Progress) { p.Sequence, p.Event = 8, "a" }), false},
		"earlier id":       {with(func(p *relay.Progress) { p.Event = "a" }), true},
		"later id":         {with(func(p *relay.Progress) { p.Event = "z" }), false},
		"other history":    {relay.Progress{History: "i", LSN: 39}, false},
		"no history":       {relay.Progress{LSN: 39}, false},
		"committed later":  {relay.Progress{History: "h", LSN: 39, At: at.Add(time.Second)}, false},
		"committed before": {relay.Progress{History: "h", LSN: 39, At: at}, true},
		"unknown":          {relay.Progress{}, false},
		"no LSN":           {relay.Progress{History: "h", Ordinal: 1, Event: "a"}, false},
	} {
		g := relay.Gate{Key: "a", Progress: gate}
		before := g
		admitted := g.Admit(&relay.ParkedEvent{Progress: test.place})
		if admitted == test.covered || test.covered && g != before || test.place.LSN == 0 && g.Progress != gate {
			t.Errorf("%s is admitted: %t, gate %+v", name, admitted, g)
		}
	}
}

// A gate of an earlier version has progress without a history. It covers events of a feed without
// one, as before: by LSN, and in a transaction by sequence.
func TestProgressOfEarlierVersionCoversFeedWithoutHistory(t *testing.T) {
	for e, covered := range map[relay.Progress]bool{
		{LSN: 39, Sequence: 3, Event: "a"}: true, {LSN: 40, Sequence: 3, Event: "a"}: true, {LSN: 40, Sequence: 5, Event: "a"}: false,
		{LSN: 41, Sequence: 3, Event: "a"}: false, {History: "h", LSN: 39, Sequence: 3, Event: "a"}: false,
	} {
		g := relay.Gate{Key: "a", Progress: relay.Progress{LSN: 40, Sequence: 4}}
		if g.Admit(&relay.ParkedEvent{Progress: e}) == covered {
			t.Errorf("%+v is admitted: %t", e, !covered)
		}
	}
}
