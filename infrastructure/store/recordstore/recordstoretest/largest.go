package recordstoretest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"feedbox/application/command"
	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore/parked"
)

// LargestEvent parks, skips and reads back an event that the store accepts. The event has a line
// of length bytes, which compress badly. If the store refuses that length, excess returns by how
// many bytes a document exceeds the limit of the store, and the largest event is used.
func LargestEvent(t *testing.T, s Subject, records parked.Records, length int, excess func(f *fault.Error) int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, length)
	for i := range text {
		for text[i] == 0 || strings.ContainsRune(`"\<>&`, rune(text[i])) {
			text[i] = byte(' ' + rng.IntN(95))
		}
	}
	baskets := Baskets(t, s.Store, nil)
	made, err := baskets.Create(t.Context(), Opening(""))
	must(t, err)
	id := made.Aggregate.ID()
	add := func(length int) error {
		_, err := baskets.Update(t.Context(), command.Target{ID: id}, func(b *Basket) error { return b.Add(string(text[:length])) })
		return err
	}
	err = add(length)
	for excess != nil && fault.Is(err, fault.TooLarge) { // first the aggregate, then the event
		refusal, _ := errors.AsType[*fault.Error](err)
		length -= excess(refusal)
		err = add(length)
	}
	must(t, err)
	if err := add(length); excess != nil && !fault.Is(err, fault.TooLarge) { // twice the line in one aggregate
		t.Errorf("beyond the limit: %v; want it too large", err)
	}
	events, err := s.Events().OfKey(t.Context(), id.String())
	must(t, err)
	stored, err := s.Store.Event(t.Context(), id.String(), events[1].ID)
	must(t, err)
	if len(stored.Document) < length {
		t.Fatalf("the stored event has %d bytes, its line %d", len(stored.Document), length)
	}

	store := parked.Store{Records: records}
	long := strings.Repeat("x", 1<<20)
	event := relay.ParkedEvent{ID: events[1].ID, Key: id.String(), Action: events[1].Action, Document: stored.Document, LSN: 1, Sequence: 2, Reason: "too_large", Error: long, ParkedAt: time.Now()}
	_, err = store.Park(t.Context(), event.Key, []relay.ParkedEvent{event}, &relay.Closing{Event: event.ID, Reason: event.Reason, Error: long, At: time.Now()})
	must(t, err)
	line, err := store.First(t.Context(), event.Key, 2, 64<<20)
	must(t, err)
	if len(line) != 1 || string(line[0].Document) != string(stored.Document) {
		t.Fatalf("%d events are parked; want the one that was stored, byte for byte", len(line))
	}
	g, err := store.SetIntent(t.Context(), event.Key, relay.Intent{Verb: relay.VerbSkip, Event: event.ID, Note: strings.Repeat("n", 2000), At: time.Now()})
	must(t, err)
	g, err = store.Remove(t.Context(), g, line, &relay.Skipped{Event: line[0], Intent: *g.Intent})
	must(t, err)
	must(t, store.Open(t.Context(), g))
	skipped, err := store.Skipped(t.Context(), event.Key)
	must(t, err)
	if len(skipped) != 1 || string(skipped[0].Event.Document) != string(stored.Document) {
		t.Errorf("%d events are skipped; want the one that was stored, byte for byte", len(skipped))
	}
}
