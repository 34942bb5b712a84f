package consumer

import (
	"fmt"
	"testing"
)

func TestJudge(t *testing.T) {
	last := Mark{Sequence: 5, AggregateVersion: 3, EventID: "e5"}
	tests := []struct {
		last Mark
		e    Event
		want Verdict
	}{
		{Mark{}, Event{ID: "e9", Sequence: 9}, Fresh},
		{last, Event{ID: "e6", Sequence: 6}, Fresh},
		{last, Event{ID: "e5", Sequence: 5}, Duplicate},
		{last, Event{ID: "other", Sequence: 5}, Fork},
		{last, Event{Sequence: 5}, Stale},
		{Mark{Sequence: 5}, Event{ID: "other", Sequence: 5}, Stale},
		{last, Event{ID: "e4", Sequence: 4}, Stale},
		{last, Event{ID: "e7", Sequence: 7}, Gap},
		{last, Event{ID: "e5"}, Duplicate},
		{last, Event{ID: "x", AggregateVersion: 2}, Stale},
		{last, Event{ID: "x", AggregateVersion: 3}, Fresh},
		{last, Event{ID: "x"}, Fresh},
	}
	for _, tt := range tests {
		if got := Judge(tt.last, &tt.e); got != tt.want {
			t.Errorf("Judge(%+v, %+v) = %v, want %v", tt.last, tt.e, got, tt.want)
		}
	}
}

// A consumer has handled events that the store has lost. The store gives their sequences to others.
func TestForkIsRecognizedAmongTheLastEventsOfAKey(t *testing.T) {
	event := func(history string, n int64) *Event { return &Event{ID: fmt.Sprint(history, n), Key: "k", Sequence: n} }
	var handled Mark
	for n := range int64(48) {
		handled = handled.Next(event("old", n+1))
	}
	for n, want := range map[int64]Verdict{48: Fork, 46: Fork, 16: Fork, 15: Stale, 1: Stale} {
		if e := event("new", n); Judge(handled, e) != want || (want == Fork) != (handled.Replaced(e) == 49-n) {
			t.Errorf("another event %d: %v, replaces %d", n, Judge(handled, e), handled.Replaced(e))
		}
	}
	for n, want := range map[int64]Verdict{48: Duplicate, 47: Stale, 16: Stale, 1: Stale} {
		if e := event("old", n); Judge(handled, e) != want || handled.Replaced(e) != 0 {
			t.Errorf("event %d again: %v", n, Judge(handled, e))
		}
	}
	inbox := NewMemoryInbox(0)
	record := func(m Mark) Mark {
		t.Helper()
		if err := inbox.Record(t.Context(), "k", m); err != nil {
			t.Fatal(err)
		}
		last, _ := inbox.Last(t.Context(), "k") // never fails
		return last
	}
	record(handled)
	last := record(handled.Next(event("new", 46)))
	if last.EventID != "new46" || Judge(last, event("old", 45)) != Stale || Judge(last, event("new", 45)) != Fork || Judge(last, event("new", 47)) != Fresh {
		t.Errorf("after the fork the mark is %+v", last)
	}
	for _, late := range []Mark{handled.Next(event("late", 40)), {Sequence: 45, EventID: "old45"}} { // of an owner that was replaced
		if now := record(late); now != last {
			t.Errorf("%+v has replaced the mark: %+v", late, now)
		}
	}
	if gap := last.Next(event("new", 49)); Judge(gap, event("other", 48)) != Stale || Judge(gap, event("other", 46)) != Fork {
		t.Errorf("after a gap the mark is %+v", gap)
	}
	if far := last.Next(event("new", 1<<40)); len(far.Recent) != maxRecent {
		t.Errorf("after a large gap the mark is %+v", far)
	}
}

// Of two processes, one handles an event and the other parks it. The mark lets one of them succeed.
func TestAnnouncementAndHandlingOfAnEventExcludeEachOther(t *testing.T) {
	e4, e5 := &Event{ID: "e4", Sequence: 4}, &Event{ID: "e5", Sequence: 5}
	for name, base := range map[string]Mark{"first event": {}, "with a sequence": {Sequence: 3, EventID: "e3"}, "without": {EventID: "x", AggregateVersion: 1}} {
		announced := base
		announced.Parking = "e4"
		for what, tc := range map[string]struct {
			m, stored Mark
			want      bool
		}{
			"announced":                       {announced, base, true},
			"announced again":                 {announced, announced, true},
			"after the event was handled":     {announced, base.Next(e4), false},
			"after a later one was handled":   {announced, base.Next(e4).Next(e5), false},
			"parked or handled, as announced": {announced.Next(e4), announced, true},
		} {
			if got := tc.m.Supersedes(tc.stored); got != tc.want {
				t.Errorf("%s, %s: %t", name, what, got)
			}
		}
		if announced.MayHandle(e4) == nil || announced.MayHandle(e5) != nil || base.MayHandle(e4) != nil {
			t.Errorf("%s: the wrong event may be handled", name)
		}
		if m := announced.Next(e4); m.Parking != "" {
			t.Errorf("%s: recorded as %+v", name, m)
		}
	}
	for name, base := range map[string]Mark{"with a sequence": {Sequence: 3, EventID: "e3"}, "without": {EventID: "e3"}} {
		parked, open, next := base, base, base
		parked.Parking, open.Parking, next.Parking = ParkedKey, OpenKey, "e4"
		if parked.MayHandle(e4) == nil || open.MayHandle(e4) != nil {
			t.Errorf("%s: an event of a parked key may be handled, or one of an open key may not", name)
		}
		for what, tc := range map[string]struct {
			m, stored Mark
			want      bool
		}{
			"late record of a former owner": {base, parked, false},
			"gate found open":               {open, parked, true},
			"gate found open too late":      {open, next, false},
			"next event announced":          {next, open, true},
			"first one parked":              {parked, Mark{}, true},
		} {
			if got := tc.m.Supersedes(tc.stored); got != tc.want {
				t.Errorf("%s, %s: %t", name, what, got)
			}
		}
	}
	if m := (Mark{Sequence: 3, EventID: "e3", Parking: ParkedKey}).Next(e4); m.Parking != ParkedKey {
		t.Errorf("an event of a parked key opens it: %+v", m)
	}
	if m := (Mark{Sequence: 3, EventID: "e3", Parking: OpenKey}).Next(e4); m.Parking != "" {
		t.Errorf("after the first event of an open key: %+v", m)
	}
	// e5 is announced after a gap, then e4 arrives.
	m := Mark{Sequence: 3, EventID: "e3", Parking: "e5"}.Next(e4)
	if m.Parking != "e5" || !m.Supersedes(Mark{Sequence: 3, EventID: "e3", Parking: "e5"}) {
		t.Errorf("after the missing event: %+v", m)
	}
}

// Without sequences the broker alone knows the order, so each handled event is the last one.
func TestEventsWithoutASequenceReplaceTheMark(t *testing.T) {
	b := NewMemoryInbox(0)
	for _, m := range []Mark{{Sequence: 5, EventID: "e5"}, {EventID: "x"}, {EventID: "y"}} {
		if err := b.Record(t.Context(), "k", m); err != nil {
			t.Fatal(err)
		}
		if last, _ := b.Last(t.Context(), "k"); last != m {
			t.Errorf("the mark is %+v, want %+v", last, m)
		}
	}
}

func TestMemoryInboxEvictsTheLeastRecentlyUsedKey(t *testing.T) {
	b := NewMemoryInbox(2)
	for i, key := range []string{"a", "b", "a", "c"} {
		if err := b.Record(t.Context(), key, Mark{Sequence: int64(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Record(t.Context(), "a", Mark{Sequence: 2}); err != nil { // ignored: it would move back
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"a": 3, "b": 0, "c": 4} {
		if m, _ := b.Last(t.Context(), key); m.Sequence != want {
			t.Errorf("mark of %s is %d, want %d", key, m.Sequence, want)
		}
	}
	for _, key := range []string{"c", "d"} {
		if err := b.Record(t.Context(), key, Mark{Sequence: 5}); err != nil {
			t.Fatal(err)
		}
		_, _ = b.Last(t.Context(), "a") // never fails
	}
	if m, _ := b.Last(t.Context(), "a"); m.Sequence != 3 {
		t.Errorf("the key that was read last is evicted: its mark is %d", m.Sequence)
	}
}

// An inbox of an earlier version may have stored a part of an id there.
func TestMarkWithAnInvalidRecentEndsNoProcess(t *testing.T) {
	t.Parallel()
	last := Mark{Sequence: 2, EventID: "b", Recent: "c"}
	if got := Judge(last, &Event{ID: "a", Sequence: 1}); got != Stale {
		t.Errorf("an earlier event is %s", got)
	}
}

// The mark of a key would make an event stale that is sent again or was parked, so each has a mark of its own.
func TestOnlyAnEventThatIsHandledAgainHasAMarkOfItsOwn(t *testing.T) {
	parked := Event{ID: "e1", Key: "k"}
	parked.Park("e1")
	for _, c := range []struct {
		e         Event
		key       string
		wasParked bool
	}{
		{Event{ID: "e1", Key: "k"}, "k", false},
		{Event{ID: "e1"}, "", false},
		{Event{ID: "e1", Key: "k", Resubmission: "r1"}, "resubmission:r1", false},
		{parked, "resubmission:parked:e1", true},
	} {
		if key, wasParked := c.e.InboxKey(), c.e.WasParked(); key != c.key || wasParked != c.wasParked {
			t.Errorf("%+v: mark %q, parked before: %t; want %q, %t", c.e, key, wasParked, c.key, c.wasParked)
		}
	}
}
