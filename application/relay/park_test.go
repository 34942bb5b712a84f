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

// Operators find with a parked event all that is known of it, by the clock of the relay.
func TestWhatIsToldOfAParkedEvent(t *testing.T) {
	lot, at := parkedtest.NewMemory(), time.Date(2026, 3, 1, 13, 0, 0, 123_456_789, time.FixedZone("", 3600))
	var told []relay.ParkedEvent
	r := newRelay(t, &broker{}, &relay.Options{Parked: lot, Now: func() time.Time { return at }, Observer: relay.Observer{
		Parked: func(_ context.Context, e relay.ParkedEvent) { told = append(told, e) },
	}})
	for range 2 { // the second time after its answer was lost
		if err := r.Park(t.Context(), letter("a a1 1", 7, errTooLarge)); err != nil {
			t.Fatal(err)
		}
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@8")); failed != nil {
		t.Fatal(failed)
	}
	rounded := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	stored, err := lot.First(t.Context(), "a", 9)
	first := relay.ParkedEvent{
		ID: "a1", Key: "a", Action: "Changed", Document: []byte("a a1 1"), LSN: 7, Sequence: 1,
		Reason: "too_large", Error: errTooLarge.Error(), Attempts: 5, ParkedAt: rounded,
	}
	second := relay.ParkedEvent{ID: "a2", Key: "a", Action: "Changed", Document: []byte("a a2 2"), LSN: 8, Sequence: 2, Reason: "held", ParkedAt: rounded}
	again := first
	first.Position, second.Position = 1<<20+1, 2<<20+2
	if diff := cmp.Diff([]relay.ParkedEvent{first, second}, stored); diff != "" || err != nil {
		t.Errorf("%v, parked (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]relay.ParkedEvent{first, again, second}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	closing := relay.Closing{Event: "a1", Reason: "too_large", Error: errTooLarge.Error(), At: rounded}
	if g := gateOf(t, lot, "a"); g.Closing != closing {
		t.Errorf("closing %+v, want %+v", g.Closing, closing)
	}
}

// An event that was sent before the gate closed is not parked, and nobody is told that it is.
func TestAnEventThatIsDoneIsNotToldAsParked(t *testing.T) {
	lot := parkedtest.NewMemory()
	if err := newRelay(t, &broker{}, withLot(lot, relay.Options{})).Park(t.Context(), letter("a a5 5", 9, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, &broker{}, withLot(lot, relay.Options{Observer: relay.Observer{
		Parked: func(_ context.Context, e relay.ParkedEvent) { t.Errorf("%s is told to be parked", e.ID) },
	}}))
	if err := r.Park(t.Context(), letter("a a4 4", 8, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	want(t, "parked", line(t, lot, "a"), "a5 too_large")
}

// replies gives each document its own result.
type replies map[string]reply

type reply struct {
	body    string
	isEvent bool
	err     error
}

func (r replies) Decode(raw []byte) (relay.Message, bool, error) {
	a := r[string(raw)]
	return relay.Message{Body: []byte(a.body)}, a.isEvent, a.err
}

// Two documents of an event are the same if they make the same message, or if neither makes
// one for the same reason.
func TestSameContent(t *testing.T) {
	decoder := replies{
		"event": {"x", true, nil}, "with a note": {"x", true, nil}, "another": {"y", true, nil},
		"none": {"x", false, nil}, "bad": {"x", false, errTooLarge}, "bad, too": {"x", false, errors.New(errTooLarge.Error())}, "worse": {"x", false, errBusy},
	}
	for pair, same := range map[[2]string]bool{
		{"event", "with a note"}: true, {"event", "another"}: false, {"event", "none"}: false,
		{"none", "bad"}: false, {"bad", "bad, too"}: true, {"bad", "worse"}: false,
	} {
		if got := relay.SameContent(decoder, []byte(pair[0]), []byte(pair[1])); got != same {
			t.Errorf("%q are the same: %t", pair, got)
		}
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
	away := errors.New("store is away")
	lot.Fail(away)
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("?", "a a1 1", "b b1 1?"))
	if len(failed) != 3 || b.sent != 0 {
		t.Fatalf("failed %v with %d sent, want all and nothing sent", failed, b.sent)
	}
	for _, f := range failed {
		if relay.ClassOf(f.Err) != relay.Outage || relay.ReasonOf(f.Err) != "gates_unknown" || !errors.Is(f.Err, away) {
			t.Errorf("failed %v, want an outage of the store", f)
		}
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
	away := errors.New("store is away")
	lot.Fail(away)
	if err := r.Park(t.Context(), letter("b b0 0", 1, errTooLarge)); !errors.Is(err, away) {
		t.Errorf("park: %v, want that the store is away", err)
	}
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2", "b b1 1"))
	if len(failed) != 1 || relay.ClassOf(failed[0].Err) != relay.Outage || failed[0].ID != "a2" {
		t.Fatalf("failed %v, want an outage for a2", failed)
	}
	if err := failed[0].Err; relay.ReasonOf(err) != "not_parked" || !errors.Is(err, away) {
		t.Errorf("a2 failed with %v, want that it could not be parked", err)
	}
	if len(b.got["b"]) != 1 || len(b.got["a"]) != 0 {
		t.Errorf("published %v, want b alone", b.got)
	}
}

func TestWithoutAPlaceForParkedEventsNoneIsPassed(t *testing.T) {
	if err := newRelay(t, &broker{}, nil).Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err == nil {
		t.Error("the caller moves its checkpoint past an event that is nowhere")
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
	want(t, "failures", failures(r.Handle(t.Context(), relay.Ownership{}, changes("x 9", "y 3"))), "0 x false", "1 y false")
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
