// Package parkedtest tests stores of parked events, which implement relay.ParkedStore and
// relay.DrainStore. Run is the suite that each of them passes. Memory is a store in memory for
// other tests.
package parkedtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// Store is a store of parked events with the methods for operators. Run tests it.
type Store interface {
	relay.ParkedStore
	relay.DrainStore
	// SetIntent sets the intent of the gate of key and replaces an earlier one. It returns
	// NotFound if the gate is open.
	SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	// Replace replaces the document of a parked event of g and stores the gate like Update, in one
	// transaction.
	Replace(ctx context.Context, g relay.Gate, e relay.ParkedEvent) (relay.Gate, error)
	// Skipped returns the records of the skipped events of key, oldest first.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
	// SkippedAmong returns those of the events that were skipped.
	SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error)
}

// Run tests the contracts of relay.ParkedStore and relay.DrainStore. open returns an empty
// store.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for name, test := range map[string]func(suite){
		"parks in order":                   parksInOrder,
		"parks once":                       parksOnce,
		"progress covers earlier events":   progressCoversEarlierEvents,
		"progress without sequences":       progressNeedsNoSequence,
		"progress ends with its history":   progressEndsWithHistory,
		"removed events are covered":       removedIsCovered,
		"orders by sequence":               ordersBySequence,
		"first is bounded by bytes":        firstIsBoundedByBytes,
		"unknown sequences keep arrival":   unknownKeepsItsPlace,
		"automatic gates have an intent":   autoHasIntent,
		"parks many and large":             parksMany,
		"parks whatever its error says":    parksAnyError,
		"an open gate parks nothing":       openGateParksNothing,
		"changes are guarded by version":   guardsByVersion,
		"removing keeps the order":         removesFromTheFront,
		"a document can be replaced":       replacesDocuments,
		"opening loses nothing":            openingLosesNothing,
		"an intent reaches the drainer":    intentReaches,
		"a skipped event leaves a record":  skipLeavesARecord,
		"a skipped event can be parked":    skippedIsParkedAgain,
		"parks whatever its id":            parksAnyID,
		"held behind the gate of a caller": heldBehindTheGateOfACaller,
	} {
		t.Run(name, func(t *testing.T) { test(suite{t, open(t)}) })
	}
}

// suite is a store under test. Its methods work on key k.
type suite struct {
	*testing.T
	store Store
}

var (
	at      = time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	closing = relay.Closing{Event: "k-e1", Reason: "too_large", Error: "too large by far", At: at}
	skip    = relay.Intent{Verb: relay.VerbSkip, Event: "k-e1", By: "ann", Note: "known", At: at}
)

func event(n int) relay.ParkedEvent {
	id := fmt.Sprintf("k-e%d", n)
	return relay.ParkedEvent{
		ID: id, Key: "k", Action: "Changed", LSN: int64(n), Sequence: int64(n), Reason: "held", ParkedAt: at,
		Document: fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","type":"domainEvent","data":{"action":"Changed","sequence":%d}}`, id, n),
		Progress: relay.Progress{History: "h1", LSN: int64(n), Sequence: int64(n), Event: id, At: at},
	}
}

// placed returns an event without a sequence, at a place in the feed.
func placed(id string, lsn, ordinal int64) relay.ParkedEvent {
	e := event(1)
	e.ID, e.LSN, e.Sequence = id, lsn, 0
	e.Progress = relay.Progress{History: "h1", LSN: lsn, Ordinal: ordinal, Event: id}
	return e
}

func events(from, to int) (out []relay.ParkedEvent) {
	for n := from; n <= to; n++ {
		out = append(out, event(n))
	}
	return out
}

func idsOf(events []relay.ParkedEvent) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// must returns v, or fails the test if err is not nil.
func must[V any](v V, err error) func(s suite) V {
	return func(s suite) V {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		return v
	}
}

func (s suite) park(c *relay.Closing, events ...relay.ParkedEvent) relay.ParkResult {
	s.Helper()
	return must(s.store.Park(s.Context(), "k", events, c))(s)
}

// parkOther parks an event of another key, which the test must not affect.
func (s suite) parkOther() {
	s.Helper()
	must(s.store.Park(s.Context(), "other", []relay.ParkedEvent{{ID: "other-e1", Document: event(1).Document, ParkedAt: at}}, &relay.Closing{Event: "other-e1", At: at}))(s)
}

func (s suite) gate() relay.Gate {
	s.Helper()
	return must(s.store.Gate(s.Context(), "k"))(s)
}

func (s suite) first(limit int) []relay.ParkedEvent {
	s.Helper()
	return must(s.store.First(s.Context(), "k", limit, 1<<30))(s)
}

func (s suite) remove(g relay.Gate, events []relay.ParkedEvent) relay.Gate {
	s.Helper()
	return must(s.store.Remove(s.Context(), g, events, nil))(s)
}

func (s suite) intents() []relay.Gate {
	s.Helper()
	return must(s.store.Intents(s.Context()))(s)
}

// want checks the ids of the parked events, their positions and their count.
func (s suite) want(ids ...string) {
	s.Helper()
	line := s.first(1000)
	if got := idsOf(line); !slices.Equal(got, ids) {
		s.Fatalf("parked events %v, want %v", got, ids)
	}
	for i, e := range line {
		if e.Key != "k" || i > 0 && e.Position <= line[i-1].Position {
			s.Fatalf("%s of key %s at %d, want key k and a position after the previous one", e.ID, e.Key, e.Position)
		}
	}
	if g := s.gate(); g.Events != int64(len(ids)) {
		s.Errorf("the gate counts %d events, want %d", g.Events, len(ids))
	}
}

func parksInOrder(s suite) {
	first := event(1)
	first.Reason, first.Error, first.Attempts = "too_large", "too large by far", 5
	s.park(&closing, first)
	s.park(nil, events(2, 9)...)
	s.park(nil, events(10, 12)...)
	s.parkOther()
	s.want(idsOf(events(1, 12))...)

	got := s.first(1)
	if len(got) != 1 || !bytes.Equal(got[0].Document, first.Document) {
		s.Fatalf("first %+v, want the one with its document", got)
	}
	got[0].Position, got[0].Progress, first.Progress = 0, relay.Progress{}, relay.Progress{}
	if fmt.Sprint(got[0]) != fmt.Sprint(first) {
		s.Errorf("event %+v, want %+v", got[0], first)
	}
	if g := s.gate(); g.Closing != closing || g.Key != "k" || g.Version == "" {
		s.Errorf("gate %+v, want its closing", g)
	}
	keys := must(s.store.Closed(s.Context()))(s)
	if slices.Sort(keys); !slices.Equal(keys, []string{"k", "other"}) {
		s.Errorf("closed %v, want both keys", keys)
	}
}

func parksOnce(s suite) {
	s.park(&closing, events(1, 4)...)
	other := event(3)
	other.Document, other.ParkedAt = []byte(`{"id":"k-e3","partitionKey":"k","edited":true}`), at.Add(time.Minute)
	other.Progress.LSN = 7 // an edit is a new change
	done := s.park(nil, event(5), event(6), other)
	if !slices.Equal(idsOf(done.Parked), idsOf(events(5, 6))) || done.Parked[0].Position == 0 {
		s.Errorf("parked %+v, want 5 and 6 with their positions", done.Parked)
	}
	if len(done.Existing) != 1 || !bytes.Equal(done.Existing[0].Document, event(3).Document) {
		s.Errorf("parked before %+v, want 3 as it is stored", done.Existing)
	}
	again := events(1, 6)
	for i := range again {
		again[i].ParkedAt = at.Add(time.Hour)
	}
	if done := s.park(&closing, again...); len(done.Parked) != 0 || len(done.Existing) != 0 {
		s.Errorf("parked again %+v, want nothing", done)
	}
	s.want(idsOf(again)...)
}

func parksMany(s suite) {
	many := events(1, 250)
	for i := range many[:3] {
		many[i].Document = fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","filler":%q}`, many[i].ID, bytes.Repeat([]byte("x"), 900<<10))
	}
	s.park(&closing, many...)
	s.want(idsOf(many)...)
}

// parksAnyError parks events whose errors quote bytes that are no text, as those of a handler or a decoder may.
func parksAnyError(s suite) {
	for n, text := range []string{"no decoder of \x00\x01", "no decoder of \xff\xfe"} {
		c, e := closing, event(n+1)
		c.Error, e.Error = text, text
		if _, err := s.store.Park(s.Context(), "k", []relay.ParkedEvent{e}, &c); err != nil {
			s.Errorf("error %q: %v", text, err)
			continue
		}
		line := s.first(10)
		if last := line[len(line)-1]; last.ID != e.ID || !strings.HasPrefix(last.Error, "no decoder of ") {
			s.Errorf("parked %+v, want the event with its error", last)
		}
	}
}

// parksAnyID parks, corrects, drains and skips events whose ids another writer has chosen.
func parksAnyID(s suite) {
	ids := []string{"orders/5?v=1#2", `orders\5`, "$gate", "$never", "$skipped-k-e1", "$event-k-e1", "\"é\n ", strings.Repeat("x", 1014), strings.Repeat("x", 1015), strings.Repeat("x", 1024)}
	var all []relay.ParkedEvent
	for i, id := range ids {
		e := event(i + 1)
		e.ID, e.Progress.Event = id, id
		all = append(all, e)
	}
	s.park(&closing, all...)
	s.want(ids...)
	if again := s.park(&closing, all...); len(again.Parked) != 0 || s.gate().Events != int64(len(ids)) {
		s.Errorf("parked again: %v", idsOf(again.Parked))
	}
	for i, id := range ids {
		g, first := s.gate(), s.first(1)
		first[0].Document = fmt.Appendf(nil, `{"corrected":%d}`, i)
		g = must(s.store.Replace(s.Context(), g, first[0]))(s)
		if first = s.first(1); first[0].ID != id || !bytes.Contains(first[0].Document, []byte("corrected")) {
			s.Errorf("corrected %.20q: the first event is %.20q with %s", id, first[0].ID, first[0].Document)
		}
		must(s.store.Remove(s.Context(), g, first, &relay.Skipped{Event: first[0], Intent: skip}))(s)
		s.want(ids[i+1:]...)
		ref := relay.EventRef{Key: "k", ID: id}
		if got := must(s.store.SkippedAmong(s.Context(), []relay.EventRef{ref, {Key: "k", ID: id + "x"}}))(s); len(got) != 1 || !got[ref] {
			s.Errorf("%.20q is not among the skipped: %v", id, got)
		}
	}
	var skipped []string
	for _, one := range must(s.store.Skipped(s.Context(), "k"))(s) {
		skipped = append(skipped, one.Event.ID)
	}
	if !slices.Equal(skipped, ids) {
		s.Errorf("skipped %.20q, want %.20q", skipped, ids)
	}
}

func openGateParksNothing(s suite) {
	if _, err := s.store.Park(s.Context(), "k", events(1, 2), nil); !errors.Is(err, relay.ErrGateOpen) {
		s.Errorf("park: %v, want ErrGateOpen", err)
	}
	if line := s.first(1000); len(line) != 0 {
		s.Errorf("parked events %v with an open gate", idsOf(line))
	}
	if _, err := s.store.Gate(s.Context(), "k"); !fault.Is(err, fault.NotFound) {
		s.Errorf("gate: %v, want not found", err)
	}
}
