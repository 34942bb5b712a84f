package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

func withLot(lot relay.ParkedStore, opts relay.Options) *relay.Options {
	opts.Parked, opts.Now = lot, time.Now
	return &opts
}

// line returns the ids behind the gate of key.
func line(t *testing.T, lot *parkedtest.Memory, key string) []string {
	t.Helper()
	events, err := lot.First(t.Context(), key, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID+" "+e.Reason)
	}
	return ids
}

func letter(line string, lsn int64, err error) relay.DeadLetter {
	return relay.DeadLetter{Change: relay.Change{Raw: []byte(line), LSN: lsn}, Attempts: 5, Err: err}
}

func TestARefusedEventAndItsFollowersAreParked(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	var parked []string
	r := newRelay(t, b, withLot(lot, relay.Options{Observer: relay.Observer{Parked: func(_ context.Context, e relay.ParkedEvent) {
		parked = append(parked, e.ID)
	}}}))
	if err := r.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("b b1 1", "a a2 2", "a a3 ?", "b b2 2", "a a4 4")); failed != nil {
		t.Fatal(failed)
	}
	want := []string{"a1 too_large", "a2 held", "a3 invalid_event", "a4 held"}
	if diff := cmp.Diff(want, line(t, lot, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"b": {"b1", "b2"}}, b.got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4"}, parked); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	g, err := lot.Gate(t.Context(), "a")
	if err != nil || g.Closing.Event != "a1" || g.Closing.Reason != "too_large" {
		t.Errorf("gate %+v, %v; want what closed it", g, err)
	}
}

func TestANewOwnerLoadsTheGatesBeforeItsFirstPage(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	first := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := first.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	second := newRelay(t, b, withLot(lot, relay.Options{}))
	if failed := second.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 2}, changes("a a2 2", "b b1 1")); failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff([]string{"a1 too_large", "a2 held"}, line(t, lot, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}

	// The other one parks again while it owns the range; this one gets it back.
	if err := first.Park(t.Context(), letter("c c1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := second.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 4}, changes("c c2 2")); failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff([]string{"c1 too_large", "c2 held"}, line(t, lot, "c")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
}

func TestNothingIsSentWhileTheGatesAreUnknown(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	lot.Fail(errors.New("store is away"))
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("?", "a a1 1"))
	if len(failed) != 2 || relay.ClassOf(failed[0].Err) != relay.Outage || relay.ClassOf(failed[1].Err) != relay.Outage || b.sent != 0 {
		t.Fatalf("failed %v with %d sent, want an outage and nothing sent", failed, b.sent)
	}
	lot.Fail(nil)
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1")); failed != nil {
		t.Fatal(failed)
	}
}

func TestGatesThatCouldNotBeLoadedAreLoadedWithTheNextPage(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	before := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := before.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	r, own := newRelay(t, b, withLot(lot, relay.Options{})), relay.Ownership{Lease: "l", Epoch: 2}
	lot.Fail(errors.New("store is away"))
	if failed := r.Handle(t.Context(), own, changes("a a2 2")); len(failed) != 1 {
		t.Fatalf("failed %v, want a2 to wait for the store", failed)
	}
	lot.Fail(nil)
	if failed := r.Handle(t.Context(), own, changes("a a2 2")); failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff([]string{"a1 too_large", "a2 held"}, line(t, lot, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
}

func TestAFailedParkingIsAnOutage(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := r.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, nil); failed != nil { // loads the gates
		t.Fatal(failed)
	}
	lot.Fail(errors.New("store is away"))
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2", "b b1 1"))
	if len(failed) != 1 || relay.ClassOf(failed[0].Err) != relay.Outage || failed[0].ID != "a2" {
		t.Fatalf("failed %v, want an outage for a2", failed)
	}
	if len(b.got["b"]) != 1 || len(b.got["a"]) != 0 {
		t.Errorf("published %v, want b alone", b.got)
	}
}

func TestAnEventWithoutAKeyIsParkedAlone(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := r.Park(t.Context(), letter("?", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1")); failed != nil || b.sent != 1 {
		t.Fatalf("error %v, %d sent", failed, b.sent)
	}
}

// TestWhatWasSentBeforeTheGateClosedIsDone has a successor read a page again whose last
// event closed the gate before the checkpoint passed it.
func TestWhatWasSentBeforeTheGateClosedIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		first := newRelay(t, b, withLot(lot, relay.Options{}))
		if failed := first.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@1", "a a2 2@1", "a a3 3@2", "a a4 4@3")); failed != nil {
			t.Fatal(failed)
		}
		if err := first.Park(t.Context(), letter("a a5 5", 4, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		var parked []string
		second := newRelay(t, b, withLot(lot, relay.Options{Observer: relay.Observer{Parked: func(_ context.Context, e relay.ParkedEvent) {
			parked = append(parked, e.ID)
		}}}))
		if failed := second.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@1", "a a2 2@1", "a a3 3@2", "a a4 4@3", "a a5 5@4", "a a6 6@5")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a5 too_large", "a6 held"}, line(t, lot, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a6"}, parked); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4", "a5", "a6"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// TestATransactionIsParkedInItsOrder parks the later event of a transaction first, as the
// feed may show it. The earlier one was not sent, though its sequence is lower.
func TestATransactionIsParkedInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		if err := r.Park(t.Context(), letter("a a2 2", 7, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@7", "a a3 3@8")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a1 held", "a2 too_large", "a3 held"}, line(t, lot, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1"})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a2", "a3"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// keyless reads documents without a key: "id sequence".
type keyless struct{}

func (keyless) Decode(raw []byte) (relay.Message, bool, error) {
	var m relay.Message
	if _, err := fmt.Sscan(string(raw), &m.ID, &m.Sequence); err != nil {
		return m, false, err
	}
	return m, false, relay.Refuse("invalid_event", "no partition key")
}

// Events without a key have no history in common: a low sequence of one says nothing of
// another.
func TestEventsWithoutAKeyDoNotPassEachOther(t *testing.T) {
	lot := parkedtest.NewMemory()
	r, err := relay.New(keyless{}, &broker{}, withLot(lot, relay.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []relay.DeadLetter{letter("x 9", 50, errTooLarge), letter("y 3", 20, errTooLarge)} {
		if err := r.Park(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	closed, err := lot.Closed(t.Context())
	if err != nil || len(closed) != 1 {
		t.Fatalf("closed %v, %v", closed, err)
	}
	if diff := cmp.Diff([]string{"x too_large", "y too_large"}, line(t, lot, closed[0])); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
}
