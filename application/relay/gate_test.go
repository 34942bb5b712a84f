package relay_test

import (
	"context"
	"errors"
	"fmt"
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

// An event that is to be held behind a gate is not admitted by a later one, which may have the same cause.
func TestEventBehindAnotherClosingIsNotAdmitted(t *testing.T) {
	at := time.Unix(9, 0)
	gate := relay.NewGate("a", relay.Closing{Event: "e", Reason: "busy", At: at})
	for closing, admitted := range map[relay.Closing]bool{
		{Event: "e", At: at.UTC()}: true, {Event: "f", At: at}: false, {Event: "e", At: at.Add(time.Second)}: false,
	} {
		g := gate
		if g.Admit(&relay.ParkedEvent{Closing: &closing}) != admitted || !admitted && g != gate {
			t.Errorf("behind %+v: admitted %t, gate %+v", closing, !admitted, g)
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

func TestReasonOf(t *testing.T) {
	for want, errs := range map[string][]error{
		"too_large":   {errTooLarge, fmt.Errorf("send: %w", errTooLarge), &relay.Error{Reason: "too_large", Err: context.Canceled}},
		"interrupted": {context.Canceled, fmt.Errorf("send: %w", context.DeadlineExceeded), &relay.Error{Err: context.Canceled}},
		"unknown":     {nil, errors.New("unheard of"), &relay.Error{Class: relay.Blocked}},
	} {
		for _, err := range errs {
			if got := relay.ReasonOf(err); got != want {
				t.Errorf("the reason of %v is %q, want %q", err, got, want)
			}
		}
	}
}

func TestErrorsContainCause(t *testing.T) {
	cause := errors.New("the cause")
	refused := relay.Refuse("not_first", "event %q: %w", "a1", cause)
	if refused.Class != relay.Refused || refused.Error() != `refused: not_first: event "a1": the cause` || !errors.Is(refused, cause) {
		t.Errorf("%v", refused)
	}
	if got := errBusy.Error(); got != "outage: busy" {
		t.Errorf("without a cause: %q", got)
	}
	publish := &relay.PublishError{Keys: []relay.KeyError{{Sent: 2, Err: errBusy}, {Group: 3, Err: refused}}}
	if got := publish.Error(); got != "publish: 2 keys failed, the first after 2 messages: outage: busy" {
		t.Errorf("%q", got)
	}
	if !errors.Is(publish, errBusy) || !errors.Is(publish, cause) {
		t.Error("a key's cause is not reachable")
	}
	if got := new(relay.PublishError).Error(); got != "publish: no key failed" {
		t.Errorf("%q", got)
	}
}

// late is a context whose deadline has passed but whose timer has not fired.
type late struct{ context.Context } //nolint:containedctx // it is one

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestEndedComparesDeadlineWithClock(t *testing.T) {
	lost := errors.New("the lease is lost")
	given, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	soon, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	for ctx, want := range map[context.Context]error{
		t.Context(): nil, soon: nil, late{t.Context()}: context.DeadlineExceeded, given: lost, late{given}: lost,
	} {
		if err := relay.Ended(ctx); (err == nil) != (want == nil) || !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", ctx, err, want)
		}
	}
}
