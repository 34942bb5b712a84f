package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
)

// countingStore counts the calls of Park.
type countingStore struct {
	*parkedtest.Memory
	parks int
}

func (c *countingStore) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	c.parks++
	return c.Memory.Park(ctx, key, events, closing)
}

// After a gate was found open, the store is not called again for its key.
func TestDrainedKeyIsNoLongerParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, &countingStore{Memory: parkedtest.NewMemory()}
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		r.Handle(t.Context(), relay.Ownership{}, nil) // loads the gates
		parkAll(t, r, "a", 1)
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		setIntent(t, mem.Memory, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(time.Minute)
		before := mem.parks
		for n := 2; n < 12; n++ {
			if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("a a%d %d", n, n))); failed != nil {
				t.Fatal(failed)
			}
		}
		if n := mem.parks - before; n != 1 || len(b.got["a"]) != 11 {
			t.Errorf("the store was asked %d times, sent %v; want once and all", n, b.got["a"])
		}
	})
}

// A store that parks an event and does not answer has closed the gate, so the relay sends no event
// of the key until the store has answered whether the gate is closed.
func TestParkWithLostAnswerHoldsBackTheKey(t *testing.T) {
	b, mem := &broker{}, &silentStore{Memory: parkedtest.NewMemory()}
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	r.Handle(t.Context(), relay.Ownership{}, nil) // loads the gates
	letter := deadLetter("a a1 1", 1, errTooLarge)
	letter.Waiting = true
	if err := r.Park(t.Context(), letter); err == nil {
		t.Fatal("the answer was not lost")
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "a a2 2")); failed != nil {
		t.Fatal(failed)
	}
	if got := parkedIDs(t, mem.Memory, "a"); len(b.got["a"]) != 0 || len(got) != 2 {
		t.Errorf("sent %v past the closed gate, parked %v; want none and both", b.got["a"], got)
	}
}

// silentStore parks, but the answer to the first Park is lost.
type silentStore struct {
	*parkedtest.Memory
	answers bool
}

func (s *silentStore) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	done, err := s.Memory.Park(ctx, key, events, closing)
	if !s.answers {
		s.answers = true
		return relay.ParkResult{}, errors.New("no answer")
	}
	return done, err
}

// A store that refuses to park, as one whose partition is full, has closed no gate. The key is sent as
// soon as the broker accepts it.
func TestRefusedParkHoldsNothingBack(t *testing.T) {
	for kind, want := range map[fault.Kind]int{fault.Internal: 2, fault.TooLarge: 2, fault.Throttled: 2, fault.Unavailable: 0} {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		r.Handle(t.Context(), relay.Ownership{}, nil) // loads the gates
		mem.Fail(fault.New(kind, "", "no"))
		letter := deadLetter("a a1 1", 1, errTooLarge)
		letter.Waiting = true
		if err := r.Park(t.Context(), letter); !fault.Is(err, kind) {
			t.Fatal(err)
		}
		r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "a a2 2"))
		if n := len(b.got["a"]); n != want {
			t.Errorf("%s: %d events were sent, want %d", kind, n, want)
		}
	}
}

// A repeated Park, as after a lost answer, is reported again. A document without an id keeps one
// generated id, different from that of another document.
func TestRepeatedParkIsReportedAgain(t *testing.T) {
	var parked []string
	mem := parkedtest.NewMemory()
	r, err := relay.New(nameless{}, &broker{}, withParked(mem, relay.Options{Observer: relay.Observer{
		Parked: func(_ context.Context, e relay.ParkedEvent) { parked = append(parked, e.ID) },
	}}))
	if err != nil {
		t.Fatal(err)
	}
	for lsn, document := range []string{"one", "one", "two"} {
		if err := r.Park(t.Context(), deadLetter(document, int64(7+lsn/2), errTooLarge)); err != nil {
			t.Fatal(err)
		}
	}
	if len(parked) != 3 || parked[0] != parked[1] || parked[1] == parked[2] || len(parkedIDs(t, mem, "a")) != 2 {
		t.Errorf("reported of %v, parked %v; want two events, the first reported twice", parked, parkedIDs(t, mem, "a"))
	}
}

// nameless decodes every document as an event of key a without an id.
type nameless struct{}

func (nameless) Decode(raw []byte) (relay.Message, bool, error) {
	return relay.Message{Key: "a", Body: raw}, false, errors.New("no id")
}

func TestRefusedEventAndLaterEventsAreParked(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	var parked []string
	r := newRelay(t, b, withParked(mem, relay.Options{Observer: relay.Observer{Parked: func(_ context.Context, e relay.ParkedEvent) {
		parked = append(parked, e.ID)
	}}}))
	if err := r.Park(t.Context(), deadLetter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("b b1 1", "a a2 2", "a a3 ?", "b b2 2", "a a4 4")); failed != nil {
		t.Fatal(failed)
	}
	want := []string{"a1 too_large", "a2 held", "a3 invalid_event", "a4 held"}
	if diff := cmp.Diff(want, parkedIDs(t, mem, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"b": {"b1", "b2"}}, b.got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4"}, parked); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	g, err := mem.Gate(t.Context(), "a")
	if err != nil || g.Closing.Event != "a1" || g.Closing.Reason != "too_large" {
		t.Errorf("gate %+v, %v; want what closed it", g, err)
	}
}

// A parked event has all known fields, with times of the relay's clock.
func TestParkedEventHasAllFields(t *testing.T) {
	mem, at := parkedtest.NewMemory(), time.Date(2026, 3, 1, 13, 0, 0, 123_456_789, time.FixedZone("", 3600))
	var reported []relay.ParkedEvent
	r := newRelay(t, &broker{}, &relay.Options{Parked: mem, Now: func() time.Time { return at }, Observer: relay.Observer{
		Parked: func(_ context.Context, e relay.ParkedEvent) { reported = append(reported, e) },
	}})
	for range 2 { // the second time after its answer was lost
		if err := r.Park(t.Context(), reportedLetter(t, relay.Ownership{}, changes("a a1 1@7")[0])); err != nil {
			t.Fatal(err)
		}
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@8")); failed != nil {
		t.Fatal(failed)
	}
	rounded := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	stored, err := mem.First(t.Context(), "a", 9, 1<<30)
	first := relay.ParkedEvent{
		ID: "a1", Key: "a", Action: "Changed", Document: []byte("a a1 1"), LSN: 7, Sequence: 1,
		Reason: "too_large", Error: errTooLarge.Error(), Attempts: 5, ParkedAt: rounded,
	}
	second := relay.ParkedEvent{ID: "a2", Key: "a", Action: "Changed", Document: []byte("a a2 2"), LSN: 8, Sequence: 2, Reason: "held", ParkedAt: rounded}
	again := first
	first.Position, second.Position = 1<<20+1, 2<<20+2
	stored1, stored2 := first, second
	first.Progress = relay.Progress{LSN: 7, Sequence: 1, Event: "a1", At: time.Time{}.UTC()}
	second.Progress = relay.Progress{LSN: 8, Sequence: 2, Event: "a2", At: time.Time{}.UTC()}
	again.Progress = first.Progress
	if diff := cmp.Diff([]relay.ParkedEvent{stored1, stored2}, stored); diff != "" || err != nil {
		t.Errorf("%v, parked (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]relay.ParkedEvent{first, again, second}, reported); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	closing := relay.Closing{Event: "a1", Reason: "too_large", Error: errTooLarge.Error(), At: rounded}
	if g := gateOf(t, mem, "a"); g.Closing != closing {
		t.Errorf("closing %+v, want %+v", g.Closing, closing)
	}
}

// replies decodes each document to its own result.
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

// Two documents are the same if they decode to the same message, or fail with the same error.
func TestSameContentComparesMessages(t *testing.T) {
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

func TestFailedParkIsOutage(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	if err := r.Park(t.Context(), deadLetter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, nil); failed != nil { // loads the gates
		t.Fatal(failed)
	}
	away := errors.New("store is away")
	mem.Fail(away)
	if err := r.Park(t.Context(), deadLetter("b b0 0", 1, errTooLarge)); !errors.Is(err, away) {
		t.Errorf("park: %v, want that the store is away", err)
	}
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2", "b b1 1"))
	if len(failed) != 2 || relay.ClassOf(failed[0].Err) != relay.Outage || failed[0].ID != "a2" || failed[1].ID != "b1" {
		t.Fatalf("failed %v, want an outage for a2, and for b1, whose gate may be closed", failed)
	}
	if err := failed[0].Err; relay.ReasonOf(err) != "not_parked" || !errors.Is(err, away) {
		t.Errorf("a2 failed with %v, want that it could not be parked", err)
	}
	mem.Fail(nil)
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("b b1 1")); failed != nil || len(b.got["b"]) != 1 || len(b.got["a"]) != 0 {
		t.Errorf("published %v, failed %v; want b alone once the store answers that its gate is open", b.got, failed)
	}
}

// silentLot answers no request to park within a while.
type silentLot struct{ *parkedtest.Memory }

func (silentLot) Park(context.Context, string, []relay.ParkedEvent, *relay.Closing) (relay.ParkResult, error) {
	time.Sleep(10 * time.Second)
	return relay.ParkResult{}, fault.New(fault.Unavailable, "", "no answer")
}

// Keys that can be neither sent nor parked stop only themselves, however many they are.
func TestSilentStoreOfParkedEventsDelaysNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, began := parkedtest.NewMemory(), time.Now()
		b := &broker{}
		sent := map[string]time.Duration{}
		r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
			for _, g := range groups {
				sent[strings.Clone(g.Key)] = time.Since(began)
			}
			return b.Publish(t.Context(), groups)
		}), withParked(silentLot{mem}, relay.Options{}))
		var lines []string
		for i := range 20 {
			key := fmt.Sprintf("parked%d", i)
			if _, err := mem.Park(t.Context(), key, []relay.ParkedEvent{{ID: "e0", Key: key}}, &relay.Closing{Event: "e0"}); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s e%d 1", key, i))
		}
		failed := r.Handle(t.Context(), relay.Ownership{}, changes(append(lines, "other o1 1")...))
		if at, ok := sent["other"]; !ok || at > 0 || len(sent) != 1 {
			t.Errorf("sent %v, want the key that is not parked alone, at once", sent)
		}
		if took := time.Since(began); len(failed) != 20 || took > 10*time.Second {
			t.Errorf("%d events failed after %s, want all of parked keys after one request without an answer", len(failed), took)
		}
		if last := failed[19].Err; relay.ReasonOf(last) != "not_parked" || !strings.Contains(last.Error(), "parked19") {
			t.Errorf("the last key failed with %v", last)
		}
	})
}

// slowLot answers a request to park after 4 s.
type slowLot struct{ *parkedtest.Memory }

func (s slowLot) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	select {
	case <-time.After(4 * time.Second):
		return s.Memory.Park(ctx, key, events, closing)
	case <-ctx.Done():
		return relay.ParkResult{}, ctx.Err()
	}
}

// Later pages of the lane wait for a page with parked keys, so many that are parked slowly wait no longer than a
// single one that is not parked at all.
func TestSlowStoreOfParkedEventsDelaysOtherKeysOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		r := newRelay(t, &broker{}, withParked(slowLot{mem}, relay.Options{}))
		var lines []string
		for i := range 20 {
			key := fmt.Sprintf("parked%d", i)
			if _, err := mem.Park(t.Context(), key, []relay.ParkedEvent{{ID: "e0", Key: key}}, &relay.Closing{Event: "e0"}); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s e%d 1", key, i+1))
		}
		for range 2 {
			began := time.Now()
			failed := r.Handle(t.Context(), relay.Ownership{}, changes(lines...))
			if took := time.Since(began); took > 10*time.Second || len(failed) != len(lines)-2 {
				t.Errorf("%d of %d events are not parked after %s, want all but 2 after 10 s", len(failed), len(lines), took)
			}
			lines = lines[2:]
		}
	})
}

func TestParkFailsWithoutStore(t *testing.T) {
	if err := newRelay(t, &broker{}, nil).Park(t.Context(), deadLetter("a a1 1", 1, errTooLarge)); err == nil {
		t.Error("the caller moves its checkpoint past an event that is nowhere")
	}
}

func TestEventWithoutKeyHoldsBackNothing(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	if err := r.Park(t.Context(), deadLetter("?", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1")); failed != nil || b.sent != 1 {
		t.Fatalf("error %v, %d sent", failed, b.sent)
	}
}

// Two documents without an id are two events, even if they have the same content.
func TestEqualDocumentsWithoutIDAreParkedSeparately(t *testing.T) {
	mem := parkedtest.NewMemory()
	r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
	for _, lsn := range []int64{1, 2, 1} { // the last one is parked again
		if err := r.Park(t.Context(), deadLetter("?", lsn, errTooLarge)); err != nil {
			t.Fatal(err)
		}
	}
	if ids := parkedIDs(t, mem, "(no key)"); len(ids) != 2 {
		t.Errorf("parked %v, want one event for each LSN", ids)
	}
}

// A new owner reads a page again. Its last event had closed the gate before the checkpoint passed
// it.
func TestEventsSentBeforeGateClosedAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		first := newRelay(t, b, withParked(mem, relay.Options{}))
		if failed := first.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@1", "a a2 2@1", "a a3 3@2", "a a4 4@3")); failed != nil {
			t.Fatal(failed)
		}
		if err := first.Park(t.Context(), reportedLetter(t, relay.Ownership{}, changes("a a5 5@4")[0])); err != nil {
			t.Fatal(err)
		}
		var parked []string
		second := newRelay(t, b, withParked(mem, relay.Options{Observer: relay.Observer{Parked: func(_ context.Context, e relay.ParkedEvent) {
			parked = append(parked, e.ID)
		}}}))
		if failed := second.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@1", "a a2 2@1", "a a3 3@2", "a a4 4@3", "a a5 5@4", "a a6 6@5")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a5 too_large", "a6 held"}, parkedIDs(t, mem, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a6"}, parked); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4", "a5", "a6"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// A call of the handler that fails as a whole, by a panic say, blames any event of a transaction.
// Those before it were not sent, so the gate has no progress from it.
func TestUnreportedFailureGivesNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for _, line := range []string{"a a3 3", "a a2 2"} {
			if err := r.Park(t.Context(), deadLetter(line, 7, errors.New("the handler panicked"))); err != nil {
				t.Fatal(err)
			}
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@7", "a a4 4@8")); failed != nil {
			t.Fatal(failed)
		}
		want(t, "parked", parkedIDs(t, mem, "a"), "a1 held", "a2 unknown", "a3 unknown", "a4 held")
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1"})
		settle(10 * time.Second)
		want(t, "published", b.got["a"], "a2", "a3", "a4")
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

// Events without a key share no history, so the sequence of one does not mark another as done.
func TestEventsWithoutKeyDoNotMarkEachOtherDone(t *testing.T) {
	mem := parkedtest.NewMemory()
	r, err := relay.New(keyless{}, &broker{}, withParked(mem, relay.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "failures", failures(r.Handle(t.Context(), relay.Ownership{}, changes("x 9", "y 3"))), "0 x false", "1 y false")
	for _, l := range []relay.DeadLetter{deadLetter("x 9", 50, errTooLarge), deadLetter("y 3", 20, errTooLarge)} {
		if err := r.Park(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	closed, err := mem.Closed(t.Context())
	if err != nil || len(closed) != 1 {
		t.Fatalf("closed %v, %v", closed, err)
	}
	if diff := cmp.Diff([]string{"x too_large", "y too_large"}, parkedIDs(t, mem, closed[0])); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
}
