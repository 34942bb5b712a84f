package operator

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// listing holds stored events, the oldest first. A page ends after an event.
type listing struct {
	relayport.Events
	stored    []relay.RecentEvent
	malformed string // key of a malformed event
	read      int    // events
}

func (l *listing) OfKey(_ context.Context, key string) (found []relay.StoredEvent, err error) {
	if key == l.malformed {
		return nil, fault.New(fault.Invalid, "unsendable", "malformed")
	}
	for _, e := range l.stored {
		if e.Key == key {
			found = append(found, e.StoredEvent)
		}
	}
	return found, nil
}

func (l *listing) Recent(_ context.Context, q relay.RecentQuery) (page relay.RecentPage, err error) {
	after := len(l.stored)
	if err := relay.Resume(q.Continuation, &after); err != nil {
		return page, err
	}
	for after--; after >= 0 && len(page.Events) < q.Limit; after-- {
		if l.stored[after].StoredAt.Before(q.From) {
			return page, nil
		}
		page.Events, page.Back = append(page.Events, l.stored[after]), l.stored[after].StoredAt
		l.read++
	}
	if after >= 0 {
		page.Continuation = relay.Continue(after + 1)
	}
	return page, nil
}

// gated lists the gates of a store in memory.
type gated struct{ *parkedtest.Memory }

func (g gated) Gates(ctx context.Context) (gates []relay.Gate, err error) {
	keys, err := g.Closed(ctx)
	for _, key := range keys {
		gate, err := g.Gate(ctx, key)
		if err != nil {
			return nil, err
		}
		gates = append(gates, gate)
	}
	return gates, err
}

// newListed returns an operator of events with the keys and actions "k0 A", one a second, and a snapshot
// that proves that all were sent.
func newListed(t *testing.T, events ...string) (*Operator, *listing, Snapshot) {
	t.Helper()
	store := &listing{}
	began := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	sequences := map[string]int64{}
	for i, text := range events {
		key, action, _ := strings.Cut(text, " ")
		sequences[key]++
		e := relay.RecentEvent{StoredEvent: relay.StoredEvent{Message: relay.Message{ID: fmt.Sprint("e", i), Key: key, Action: action, Sequence: sequences[key]}}}
		e.StoredAt = began.Add(time.Duration(i) * time.Second)
		store.stored = append(store.stored, e)
	}
	o := New(&config.Relay{EventTTL: 48 * time.Hour}, Store{Store: relayport.Store{Feed: memfeed.New(nil), Events: store, Parked: gated{parkedtest.NewMemory()}}}, nil)
	whole := Range{Lease: changefeed.Lease{Range: changefeed.FullRange()}, Lag: changefeed.RangeLag{Known: true}}
	return o, store, Snapshot{At: time.Now(), Ranges: []Range{whole}}
}

// pages returns the events of all pages as "id status".
func pages(t *testing.T, o *Operator, s Snapshot, f EventFilter) (found []string, n int) {
	t.Helper()
	for n = 1; ; n++ {
		page, err := o.Events(t.Context(), s, f)
		if err != nil || n > 100 {
			t.Fatalf("%+v, page %d: %v", f, n, err)
		}
		for _, e := range page.Events {
			found = append(found, e.ID+" "+string(e.Status))
		}
		if f.Continuation = page.Continuation; f.Continuation == "" {
			return found, n
		}
	}
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	o, store, s := newListed(t, "a Created", "b Created", "a Renamed", "c Created", "b Deleted")
	if _, err := o.Parked.Park(t.Context(), "b", []relay.ParkedEvent{
		{ID: "e1", Key: "b", Action: "Created", Sequence: 1, Attempts: 3, ParkedAt: store.stored[1].StoredAt}, {ID: "e4", Key: "b", Action: "Deleted", Sequence: 2, ParkedAt: store.stored[4].StoredAt},
	}, &relay.Closing{At: store.stored[1].StoredAt}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		filter EventFilter
		want   string
	}{
		{EventFilter{}, "e4 held e3 sent e2 sent e1 parked e0 sent"},
		{EventFilter{Action: "Created"}, "e3 sent e1 parked e0 sent"},
		{EventFilter{Key: "a"}, "e2 sent e0 sent"},
		{EventFilter{Key: "b", Action: "Deleted"}, "e4 held"},
		{EventFilter{Key: "b", State: StatusSent}, ""},
		{EventFilter{Key: "none"}, ""},
		{EventFilter{ID: "e2"}, "e2 sent"},
		{EventFilter{Key: "c", ID: "e2"}, ""},
		{EventFilter{State: StatusSent}, "e3 sent e2 sent e0 sent"},
		{EventFilter{State: StatusParked}, "e1 parked e4 held"},
		{EventFilter{State: StatusParked, Key: "a"}, ""},
		{EventFilter{State: StatusParked, Action: "Deleted"}, "e4 held"},
		{EventFilter{State: StatusUnknown}, ""},
		{EventFilter{From: store.stored[1].StoredAt.Add(time.Millisecond), Until: store.stored[3].StoredAt}, "e2 sent e1 parked"},
	} {
		for _, limit := range []int{1, 2, 50} {
			test.filter.Limit = limit
			if got, _ := pages(t, o, s, test.filter); strings.Join(got, " ") != test.want {
				t.Errorf("%+v: %v, want %s", test.filter, got, test.want)
			}
		}
	}
}

// A listed parked event has the fields of its parked copy, because the stored event may have expired.
func TestParkedEventIsListedWithItsError(t *testing.T) {
	o, _, s := newListed(t)
	at := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	refused := relay.ParkedEvent{ID: "e1", Key: "a", Action: "Created", Sequence: 7, Attempts: 3, Error: "too large", ParkedAt: at, Document: []byte(`{"id":"e1"}`)}
	held := relay.ParkedEvent{ID: "e2", Key: "a", Action: "Renamed", Sequence: 8, ParkedAt: at.Add(time.Minute), Document: []byte(`{"id":"e2"}`)}
	if _, err := o.Parked.Park(t.Context(), "a", []relay.ParkedEvent{refused, held}, &relay.Closing{Event: "e1", At: at}); err != nil {
		t.Fatal(err)
	}
	want := EventPage{Examined: 2, Back: at}
	for _, c := range []struct {
		of     relay.ParkedEvent
		status Status
	}{{refused, StatusParked}, {held, StatusHeld}} {
		e := ListedEvent{Status: c.status, ParkedAt: c.of.ParkedAt}
		e.ID, e.Key, e.Action, e.Sequence, e.Body, e.Trouble = c.of.ID, c.of.Key, c.of.Action, c.of.Sequence, c.of.Document, c.of.Error
		want.Events = append(want.Events, e)
	}
	if got, err := o.Events(t.Context(), s, EventFilter{State: StatusParked, Limit: 5}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Sequences that are absent between two events may have expired or been removed. An event without a sequence
// has no neighbours.
func TestMissingSequencesAreThoseBetweenTwoEvents(t *testing.T) {
	for _, c := range []struct{ sequences, want []int64 }{
		{nil, nil},
		{[]int64{7}, nil},
		{[]int64{1, 2, 3}, nil},
		{[]int64{3, 5, 8}, []int64{4, 6, 7}},
		{[]int64{0, 0, 5, 7}, []int64{6}},
		{[]int64{1, 0, 5}, nil},
	} {
		var messages []relay.Message
		for _, n := range c.sequences {
			messages = append(messages, relay.Message{Sequence: n})
		}
		if got := missing(messages); !slices.Equal(got, c.want) {
			t.Errorf("of %v, %v are missing, want %v", c.sequences, got, c.want)
		}
	}
}

// The key that was parked last comes first. Keys that were parked at one time have the order of their names.
func TestPagesOfParkedEventsHaveEachEventOnce(t *testing.T) {
	o, store, s := newListed(t, "a A", "b A", "c A", "d A")
	for i, at := range []int{0, 2, 2, 1} {
		e := store.stored[i]
		if _, err := o.Parked.Park(t.Context(), e.Key, []relay.ParkedEvent{{ID: e.ID, Key: e.Key, Sequence: 1, Attempts: 1}}, &relay.Closing{At: store.stored[at].StoredAt}); err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit < 6; limit++ {
		if got, _ := pages(t, o, s, EventFilter{State: StatusParked, Limit: limit}); strings.Join(got, " ") != "e1 parked e2 parked e3 parked e0 parked" {
			t.Errorf("%d events a page: %v", limit, got)
		}
	}
	if page, err := o.Events(t.Context(), s, EventFilter{State: StatusParked, Limit: 5}); err != nil || page.Cut != nil {
		t.Errorf("%v, %v: all parked events were read", page.Cut, err)
	}
}

// A filter that matches nothing examines a bounded number of events, and the next page continues there.
func TestPageExaminesABoundedNumberOfEvents(t *testing.T) {
	events := slices.Repeat([]string{"k A"}, 3*maxExamined)
	events[10] = "other B"
	o, store, s := newListed(t, events...)
	page, err := o.Events(t.Context(), s, EventFilter{Action: "B", Limit: 50})
	if err != nil || len(page.Events) != 0 || page.Examined != maxExamined || store.read != maxExamined || page.Continuation == "" || !page.Back.Equal(store.stored[2*maxExamined].StoredAt) {
		t.Errorf("%+v after %d events, %v", page, store.read, err)
	}
	if found, n := pages(t, o, s, EventFilter{Action: "B", Limit: 50}); len(found) != 1 || n != 3 {
		t.Errorf("%v in %d pages", found, n)
	}
}

func TestMalformedEventDoesNotHideItsKey(t *testing.T) {
	o, store, s := newListed(t, "a A", "b A", "a B")
	store.malformed, store.stored[2].Trouble = "a", "no action"
	page, err := o.Events(t.Context(), s, EventFilter{Key: "a", Limit: 50})
	if err != nil || len(page.Events) != 2 || page.Events[0].Trouble != "no action" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestSkippedEventDoesNotCountAsSent(t *testing.T) {
	o, _, s := newListed(t, "a A", "a B")
	first := relay.ParkedEvent{ID: "e0", Key: "a", Sequence: 1, Attempts: 1}
	if _, err := o.Parked.Park(t.Context(), "a", []relay.ParkedEvent{first}, &relay.Closing{}); err != nil {
		t.Fatal(err)
	}
	gate, err := o.Parked.Gate(t.Context(), "a")
	if err == nil {
		gate, err = o.Parked.Remove(t.Context(), gate, []relay.ParkedEvent{first}, &relay.Skipped{Event: first})
	}
	if err == nil {
		err = o.Parked.Open(t.Context(), gate)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []EventFilter{{Limit: 5}, {Limit: 5, Key: "a"}} {
		if got, _ := pages(t, o, s, f); strings.Join(got, " ") != "e1 sent e0 skipped" {
			t.Errorf("%+v: %v", f, got)
		}
	}
}

// Only the first parked events of a key are read. A later event of the key, which may be parked as well,
// is not sent because the checkpoint has passed it.
func TestEventAfterTheReadPartOfALineIsUnknown(t *testing.T) {
	o, store, s := newListed(t, slices.Repeat([]string{"a A"}, timelineEvents+5)...)
	var parked []relay.ParkedEvent
	store.stored[timelineEvents+3].Sequence = 0
	for _, e := range store.stored[1:] {
		parked = append(parked, relay.ParkedEvent{ID: e.ID, Key: "a", Sequence: e.Sequence})
	}
	if _, err := o.Parked.Park(t.Context(), "a", parked, &relay.Closing{}); err != nil {
		t.Fatal(err)
	}
	timeline, err := o.Timeline(t.Context(), "a", s)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]Status{0: StatusSent, 1: StatusHeld, timelineEvents: StatusHeld, timelineEvents + 1: StatusUnknown, timelineEvents + 3: StatusUnknown, timelineEvents + 4: StatusUnknown} {
		if got := timeline.Events[i].Status; got != want {
			t.Errorf("event %d is %s, want %s", i, got, want)
		}
	}
	// The list of parked events has only the first ones, and names the key.
	page, err := o.Events(t.Context(), s, EventFilter{State: StatusParked, ID: parked[timelineEvents+1].ID, Limit: 5})
	if err != nil || len(page.Events) != 0 || !slices.Equal(page.Cut, []string{"a"}) {
		t.Errorf("%+v, %v; want that key a has more parked events", page, err)
	}
}

// Nothing but a position or time before the checkpoint proves that an event was sent.
func TestStateOfAnEventIsProved(t *testing.T) {
	at := time.Now().Truncate(time.Second)
	known := changefeed.RangeLag{Known: true}
	behind := changefeed.RangeLag{Known: true, Transactions: 1, Oldest: at}
	earlier := changefeed.RangeLag{Known: true, Read: at.Add(-5 * time.Second)}
	for name, test := range map[string]struct {
		event relay.StoredEvent
		lease changefeed.Lease
		lag   changefeed.RangeLag
		age   time.Duration // of the snapshot
		want  Status
	}{
		"nothing waits, and the event is older than the measurement":        {event: relay.StoredEvent{StoredAt: at.Add(-5 * time.Second)}, lag: known, want: StatusSent},
		"nothing waited when its relay last read the range":                 {event: relay.StoredEvent{StoredAt: at.Add(-5 * time.Second)}, lag: earlier, want: StatusUnknown},
		"it is older than the last read of its relay":                       {event: relay.StoredEvent{StoredAt: at.Add(-7 * time.Second)}, lag: earlier, want: StatusSent},
		"it was committed about when the measurement began":                 {event: relay.StoredEvent{StoredAt: at}, lag: known, want: StatusUnknown},
		"it is older than the first change that waits":                      {event: relay.StoredEvent{StoredAt: at.Add(-2 * time.Second)}, lag: behind, want: StatusSent},
		"it may be in the second before the first change that waits":        {event: relay.StoredEvent{StoredAt: at.Add(-time.Second)}, lag: behind, want: StatusUnknown},
		"it is not older than the first change that waits":                  {event: relay.StoredEvent{StoredAt: at}, lag: behind, want: StatusWaiting},
		"it waited in an old measurement":                                   {event: relay.StoredEvent{StoredAt: at}, lag: behind, age: time.Minute, want: StatusUnknown},
		"it was sent in an old measurement":                                 {event: relay.StoredEvent{StoredAt: at.Add(-2 * time.Minute)}, lag: known, age: time.Minute, want: StatusSent},
		"the lag is not known":                                              {event: relay.StoredEvent{StoredAt: at.Add(-time.Hour)}, want: StatusUnknown},
		"the checkpoint is after its position":                              {event: relay.StoredEvent{Message: relay.Message{LSN: 7}, StoredAt: at}, lease: changefeed.Lease{LSN: 8}, want: StatusSent},
		"the checkpoint is before its position, although it is old":         {event: relay.StoredEvent{Message: relay.Message{LSN: 9}, StoredAt: at.Add(-time.Hour)}, lease: changefeed.Lease{LSN: 8}, lag: known, want: StatusWaiting},
		"the checkpoint is at its position, and its transaction may be cut": {event: relay.StoredEvent{Message: relay.Message{LSN: 8}, StoredAt: at.Add(-time.Hour)}, lease: changefeed.Lease{LSN: 8}, want: StatusUnknown},
		"the checkpoint is at its position, and nothing waits":              {event: relay.StoredEvent{Message: relay.Message{LSN: 8}, StoredAt: at.Add(-time.Hour)}, lease: changefeed.Lease{LSN: 8}, lag: known, want: StatusSent},
		"its range is being split":                                          {event: relay.StoredEvent{StoredAt: at.Add(-time.Hour)}, lease: changefeed.Lease{State: changefeed.LeasePending}, want: StatusUnknown},
	} {
		o, _, _ := newListed(t)
		test.lease.Range, test.event.Key = changefeed.FullRange(), "k"
		other := Range{Lease: changefeed.Lease{State: changefeed.LeaseSplit, Range: changefeed.FullRange()}}
		s := Snapshot{At: at.Add(-test.age), Ranges: []Range{other, {Lease: test.lease, Lag: test.lag}}}
		if !test.lag.Known {
			s.Unknown = 1
		}
		if got := o.proof(t.Context(), s)(&test.event); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	o, _, _ := newListed(t)
	if got := o.proof(t.Context(), Snapshot{})(&relay.StoredEvent{StoredAt: at.Add(-time.Hour)}); got != StatusUnknown {
		t.Errorf("without a measurement: %s", got)
	}
}

// An event with a position is sent if the checkpoint has passed that, however old it is. One without is sent if
// every change of its time was handled, also in a store that does not know the range of its key.
func TestPositionOfAnEventDecidesBeforeItsAge(t *testing.T) {
	o, _, s := newListed(t)
	s.Ranges[0].LSN = 8
	placed := o.store.Feed
	for _, c := range []struct {
		feed changefeed.Feed
		lsn  int64
		want Status
	}{
		{placed, 0, StatusSent},
		{placed, 7, StatusSent},
		{placed, 8, StatusSent},
		{placed, 9, StatusWaiting},
		{unreadable{placed}, 0, StatusSent},
		{unreadable{placed}, 7, StatusUnknown},
		{unreadable{placed}, 9, StatusUnknown},
	} {
		o.store.Feed = c.feed
		if got := o.proof(t.Context(), s)(&relay.StoredEvent{Message: relay.Message{Key: "k", LSN: c.lsn}, StoredAt: s.At.Add(-time.Hour)}); got != c.want {
			t.Errorf("position %d, placed: %t: %s, want %s", c.lsn, c.feed == placed, got, c.want)
		}
	}
}

// lettersOf holds the dead letters of consumers in memory.
type lettersOf map[string][]DeadLetter

func (l lettersOf) Read(_ context.Context, consumer string, limit int) ([]DeadLetter, bool, error) {
	found, ok := l[consumer]
	if !ok {
		return nil, false, relayport.ErrNoConsumer
	}
	return found[:min(limit, len(found))], len(found) > limit, nil
}

func (lettersOf) Reach(string) string { return "" }

func (lettersOf) Claim(context.Context, string, []string) (relayport.LetterClaim, error) {
	return nil, relayport.ErrNoLetter
}

func TestDeadEventsOfAllConsumersAreListed(t *testing.T) {
	o, store, s := newListed(t, "a Created")
	at := store.stored[0].StoredAt
	letters := lettersOf{
		"billing": {
			{ID: "1", Event: "e1", Key: "a", Action: "Created", Reason: "invalid", Description: "no e-mail", EnqueuedAt: at},
			{ID: "2", Event: "e2", Key: "b", Action: "Renamed", EnqueuedAt: at.Add(2 * time.Hour)},
		},
		"audit": {{ID: "1", Event: "e1", Key: "a", Action: "Created", EnqueuedAt: at.Add(time.Hour)}, {ID: "2", Event: "e3", Key: "a", Action: "Deleted"}},
	}
	o.cfg.Broker.Consumers, o.broker = []string{"billing", "audit"}, &Broker{DeadLetters: letters}
	for _, test := range []struct {
		filter EventFilter
		want   string
	}{
		{EventFilter{}, "e2 dead e1 dead e1 dead e3 dead"}, // the time of the last one is unknown
		{EventFilter{Key: "a", Action: "Created"}, "e1 dead e1 dead"},
		{EventFilter{ID: "e2"}, "e2 dead"},
		{EventFilter{From: at.Add(time.Minute), Until: at.Add(2 * time.Hour)}, "e1 dead e3 dead"},
	} {
		test.filter.State = StatusDead
		for _, limit := range []int{1, 3, 50} {
			test.filter.Limit = limit
			if got, _ := pages(t, o, s, test.filter); strings.Join(got, " ") != test.want {
				t.Errorf("%+v: %v, want %s", test.filter, got, test.want)
			}
		}
	}
	page, err := o.Events(t.Context(), s, EventFilter{State: StatusDead, Limit: 3})
	if last := page.Events[2]; err != nil || last.Consumer != "billing" || last.Letter != "1" || last.Trouble != "consumer billing: invalid: no e-mail" {
		t.Errorf("the letter is %+v, %v", last, err)
	}
	for len(letters["audit"]) <= maxExamined {
		letters["audit"] = append(letters["audit"], DeadLetter{ID: fmt.Sprint(len(letters["audit"]) + 1)})
	}
	if page, err = o.Events(t.Context(), s, EventFilter{State: StatusDead, Limit: 1}); err != nil || !slices.Equal(page.Omitted, []string{"audit"}) {
		t.Errorf("consumers with more letters: %v, %v", page.Omitted, err)
	}
	o.broker = nil
	if _, err := o.Events(t.Context(), s, EventFilter{State: StatusDead, Limit: 1}); err == nil {
		t.Error("dead events were listed without a broker")
	}
}

func TestListOfAKeyRefusesAContinuationThatItCannotFind(t *testing.T) {
	o, _, s := newListed(t, "a Created", "a Renamed")
	if _, err := o.Events(t.Context(), s, EventFilter{Key: "a", Limit: 1, Continuation: relay.Continue("expired")}); !fault.Is(err, fault.Invalid) {
		t.Errorf("the list began again: %v", err)
	}
}

func TestHostileFiltersAreRefused(t *testing.T) {
	o, _, s := newListed(t, "a A")
	for _, f := range []EventFilter{
		{Key: "a\x00b"},
		{ID: strings.Repeat("x", 2000)},
		{Action: "\xff"},
		{State: "everything"},
		{Continuation: "%%%"},
		{Continuation: "bm9uZQ"},
		{Key: "a", Continuation: "bm9uZQ"},
		{State: StatusParked, Continuation: "bm9uZQ"},
		{From: time.Unix(2, 0), Until: time.Unix(1, 0)}, // a list of no possible event would look as if there were none
		{From: time.Unix(1, 0), Until: time.Unix(1, 0), State: StatusDead},
	} {
		f.Limit = 5
		if page, err := o.Events(t.Context(), s, f); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %+v, %v", f, page, err)
		}
	}
	for _, text := range []string{`' OR 1=1 --`, `"] OR true OR c["`, `../..`, `.`, `__x__`, "\u202e", `<script>`} {
		for _, f := range []EventFilter{{Key: text}, {ID: text}, {Action: text}} {
			f.Limit = 5
			if got, _ := pages(t, o, s, f); len(got) != 0 {
				t.Errorf("%+v: %v", f, got)
			}
		}
	}
}
