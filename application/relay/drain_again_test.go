package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// parkWaiting parks an event of each key that waited too long.
func parkWaiting(t *testing.T, r *relay.Relay, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := r.Park(t.Context(), waitingLetter(key+" "+key+"1 1", 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// A key that can be sent shows that the broker is there: the look goes on.
func TestALookGoesOnWhileSomethingIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := parkedtest.NewMemory()
		r := newRelay(t, &broker{}, withLot(lot, relay.Options{}))
		for n := range 20 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		calls := 0
		run(t, newDrainer(t, lot, publisherFunc(func([]relay.Group) error {
			if calls++; calls%2 == 0 {
				return nil
			}
			return errBusy
		}), relay.DrainOptions{}, nil))
		settle(time.Second)
		if calls != 20 {
			t.Errorf("%d keys were tried, want all", calls)
		}
	})
}

// A key that moves on, if only a little, is tried again soon.
func TestAKeyThatMovesOnIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{fail: failing(errBusy, "a")}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkWaiting(t, r, "a")
		for n := 2; n <= 6; n++ {
			if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("a a%d %d", n, n))); failed != nil {
				t.Fatal(failed)
			}
		}
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		settle(time.Hour) // the pauses are a minute
		b.mu.Lock()
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		b.mu.Unlock()
		settle(2 * time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := len(b.got["a"]); n < 6 {
			t.Errorf("%d of 6 events sent in two minutes, one each time", n)
		}
	})
}

// A range that is owned again is drained at once: what is not owned spends no pause.
func TestARegainedRangeIsTriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot, ranges := &broker{fail: failing(errBusy, "a")}, parkedtest.NewMemory(), &owner{}
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 1)
		parkAll(t, r, "b", 1)
		run(t, newDrainerOf(t, lot, ranges, b, relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Hour + 3*time.Second)
		ranges.away.Store(true)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		intend(t, lot, "b", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Hour)
		ranges.away.Store(false)
		settle(7 * time.Second)
		if b.sent != 2 {
			t.Errorf("%d events sent within a look, want both", b.sent)
		}
	})
}

func TestANewIntentEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{fail: failing(errBusy, "a")}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 1)
		var tries atomic.Int32
		run(t, newDrainer(t, lot, publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			tries.Add(1)
			return b.Publish(ctx, groups)
		}), relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Hour)
		for before := tries.Load(); tries.Load() == before; {
			settle(time.Second)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()}) // a minute before the next try
		settle(7 * time.Second)
		if b.sent != 1 {
			t.Error("an event waits out the pause of an earlier intent")
		}
	})
}

// What was accepted before a key's last try says nothing of its refusal.
func TestOnlyWhatWasAcceptedSinceMakesARefusalCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{fail: failing(errBusy, "b")}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkWaiting(t, r, "b")
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		settle(time.Minute)
		parkWaiting(t, r, "a")
		settle(10 * time.Minute) // a is sent, b tried many times since
		b.mu.Lock()
		b.fail = failing(errNotAllowed, "b")
		b.mu.Unlock()
		settle(10 * time.Minute)
		if g, err := lot.Gate(t.Context(), "b"); err != nil || !g.Closing.Auto || b.sent != 1 {
			t.Errorf("gate %+v, %v, %d sent; want b to wait for the broker", g, err, b.sent)
		}
	})
}

// An event that was mended into another one is not sent in its place.
func TestAnEventThatBecameAnotherIsNotSent(t *testing.T) {
	for document, reason := range map[string]string{"a a9 1": "identity_changed", "z a1 1": "identity_changed", "-": "not_an_event"} {
		synctest.Test(t, func(t *testing.T) {
			b, lot, drained := &broker{}, parkedtest.NewMemory(), &told{}
			parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 1)
			lot.Mend("a", "a1", []byte(document))
			run(t, newDrainer(t, lot, b, relay.DrainOptions{}, drained))
			intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
			settle(time.Minute)
			if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Intent != nil || g.Error == "" || b.sent != 0 {
				t.Errorf("%q: gate %+v, %v, %d sent; want it given up", document, g, err, b.sent)
			}
			want(t, document, drained.all(), "a sent 0 differ 0 skip false open false "+reason)
		})
	}
}

// A retry from the store counts as different only what it sent, and an event that is gone
// from there was not refused by the broker.
func TestARetryFromTheStoreStopsHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot, stored, drained := &broker{}, parkedtest.NewMemory(), &store{}, &told{}
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkWaiting(t, r, "a")
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3")); failed != nil {
			t.Fatal(failed)
		}
		stored.put("a1", "a a1 1 mended")
		stored.put("a2", "a a2 2 mended")
		stored.put("a3", "")
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		run(t, newDrainer(t, lot, b, relay.DrainOptions{Stored: stored}, drained))
		settle(time.Second)
		want(t, "drained", drained.all(), "a sent 1 differ 1 skip false open false busy")
		b.mu.Lock()
		b.fail = failing(errBusy, "a")
		b.mu.Unlock()
		stored.put("a2", "")
		settle(time.Minute)
		if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Intent != nil || !g.Closing.Auto {
			t.Errorf("gate %+v, %v; want the intent given up and the key to wait for the broker", g, err)
		}
	})
}

// counting counts the calls of Park.
type counting struct {
	*parkedtest.Memory
	parks int
}

func (c *counting) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.Parking, error) {
	c.parks++
	return c.Memory.Park(ctx, key, events, closing)
}

// Once the gate of a key was found open the store is not asked again.
func TestAKeyThatIsDrainedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, &counting{Memory: parkedtest.NewMemory()}
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 1)
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		intend(t, lot.Memory, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(time.Minute)
		before := lot.parks
		for n := 2; n < 12; n++ {
			if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("a a%d %d", n, n))); failed != nil {
				t.Fatal(failed)
			}
		}
		if n := lot.parks - before; n != 1 || len(b.got["a"]) != 11 {
			t.Errorf("the store was asked %d times, sent %v; want once and all", n, b.got["a"])
		}
	})
}

// A call of Park whose answer was lost is told when it comes again, and a document
// without an id is one event each time, another one than the next.
func TestParkedAgain(t *testing.T) {
	var parked []string
	lot := parkedtest.NewMemory()
	r, err := relay.New(nameless{}, &broker{}, withLot(lot, relay.Options{Observer: relay.Observer{
		Parked: func(_ context.Context, e relay.ParkedEvent) { parked = append(parked, e.ID) },
	}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"one", "one", "two"} {
		if err := r.Park(t.Context(), letter(document, 7, errTooLarge)); err != nil {
			t.Fatal(err)
		}
	}
	if len(parked) != 3 || parked[0] != parked[1] || parked[1] == parked[2] || len(line(t, lot, "a")) != 2 {
		t.Errorf("told of %v, parked %v; want two events, the first told twice", parked, line(t, lot, "a"))
	}
}

// nameless finds events of key a without an id.
type nameless struct{}

func (nameless) Decode(raw []byte) (relay.Message, bool, error) {
	return relay.Message{Key: "a", Body: raw}, false, errors.New("no id")
}

// What is known of a key from an earlier failure is replaced by what came since.
func TestTheProgressOfAKeyIsTheLatest(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{Observer: relay.Observer{Missing: func(context.Context, relay.Missing) {}}}))
	b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
	r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@1", "a a2 2@2"))
	b.fail = nil
	r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3"))
	bad := "a a4 ?"
	for range 2 { // the second time before is not known any more
		r.Handle(t.Context(), relay.Ownership{}, changes(bad+"@4"))
	}
	if err := r.Park(t.Context(), letter(bad, 4, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Progress != (relay.Progress{Sequence: 3, LSN: 3}) {
		t.Errorf("gate %+v, %v; want progress up to 3", g, err)
	}
	if ids := line(t, lot, "a"); !slices.Equal(ids, []string{"a4 too_large"}) {
		t.Errorf("parked %v", ids)
	}
}

// An event that was sent and does not tell its sequence counts as the next one.
func TestTheProgressOfAKeyHoldsWhatTellsNoSequence(t *testing.T) {
	lot := parkedtest.NewMemory()
	r := newRelay(t, &broker{}, withLot(lot, relay.Options{}))
	r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1@1", "a a2 untold@2"))
	if err := r.Park(t.Context(), letter("a a3 ?", 3, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if g := gateOf(t, lot, "a"); g.Progress != (relay.Progress{Sequence: 2, LSN: 2}) {
		t.Errorf("progress %+v, want up to 2", g.Progress)
	}
}

// What was parked and drained is done as what was sent is, at the LSN that the feed tells.
func TestTheProgressOfAKeyHoldsWhatWasDrained(t *testing.T) {
	lot := parkedtest.NewMemory()
	r := newRelay(t, &broker{}, withLot(lot, relay.Options{}))
	if err := r.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2"))
	events, err := lot.First(t.Context(), "a", 3)
	if err != nil || len(events) != 2 || events[0].LSN != 1 || events[1].LSN != 2 {
		t.Fatalf("parked %+v, %v; want two events with their LSNs", events, err)
	}
	g, err := lot.Gate(t.Context(), "a")
	if err == nil {
		g, err = lot.Remove(t.Context(), g, events, nil)
	}
	if err = errors.Join(err, lot.Open(t.Context(), g)); err != nil {
		t.Fatal(err)
	}
	bad := "a a3 ?"
	r.Handle(t.Context(), relay.Ownership{}, changes(bad+"@3"))
	if err := r.Park(t.Context(), letter(bad, 3, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Progress != (relay.Progress{Sequence: 2, LSN: 2}) {
		t.Errorf("gate %+v, %v; want progress up to 2", g, err)
	}
}

// What was asked for while an earlier intent was given up is not given up with it.
func TestANewerIntentOutlivesTheOneThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot, tries := parkedtest.NewMemory(), 0
		parkAll(t, newRelay(t, &broker{}, withLot(lot, relay.Options{})), "a", 1)
		run(t, newDrainer(t, lot, publisherFunc(func([]relay.Group) error {
			if tries++; tries == 1 {
				intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, By: "bob", At: time.Now()})
			}
			return errTooLarge
		}), relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now()})
		settle(time.Minute)
		if tries != 2 {
			t.Errorf("%d tries, want one for each intent", tries)
		}
	})
}

// What is remembered of a key, parked or failing, is not the memory of a page.
func TestParkedAndFailingKeysOutliveThePage(t *testing.T) {
	b, lot := &broker{}, parkedtest.NewMemory()
	r, err := relay.New(aliasingDecoder{}, b, withLot(lot, relay.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	handle := func(lines ...string) {
		var page []relay.Change
		for _, line := range lines {
			page = append(page, relay.Change{Raw: []byte(line), LSN: 7})
		}
		r.Handle(t.Context(), relay.Ownership{}, page)
		for i := range page {
			copy(page[i].Raw, "x 0")
		}
	}
	handle() // loads the gates
	b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
	handle("a 1", "a 2")
	dead := letter("a 2", 7, errTooLarge)
	if err := r.Park(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	copy(dead.Change.Raw, "x 0")
	b.fail = nil
	handle("a 3")
	if b.sent != 1 {
		t.Errorf("%d events sent, want only the first: the key is parked", b.sent)
	}
	if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Progress != (relay.Progress{Sequence: 1, LSN: 7}) {
		t.Errorf("gate %+v, %v; want progress up to 1", g, err)
	}
}
