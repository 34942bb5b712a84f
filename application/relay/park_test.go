package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/lottest"
)

func withLot(lot relay.Lot, opts relay.Options) *relay.Options {
	opts.Lot, opts.Now = lot, time.Now
	return &opts
}

// line returns the ids behind the gate of key.
func line(t *testing.T, lot *lottest.Memory, key string) []string {
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

func letter(line string, lsn int64, err error) relay.Letter {
	return relay.Letter{Change: relay.Change{Raw: []byte(line), LSN: lsn}, Attempts: 5, Err: err}
}

func TestARefusedEventAndItsFollowersAreParked(t *testing.T) {
	b, lot := &broker{}, lottest.NewMemory()
	var parked []string
	r := newRelay(t, b, withLot(lot, relay.Options{Hooks: relay.Hooks{Parked: func(_ context.Context, e relay.ParkedEvent) {
		parked = append(parked, e.ID)
	}}}))
	if err := r.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(t.Context(), changes("b b1 1", "a a2 2", "a a3 ?", "b b2 2", "a a4 4")); err != nil {
		t.Fatal(err)
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
	b, lot := &broker{}, lottest.NewMemory()
	first := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := first.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	second := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := second.HandleOwned(t.Context(), relay.Tenure{Lease: "l", Epoch: 2}, changes("a a2 2", "b b1 1")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a1 too_large", "a2 held"}, line(t, lot, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}

	// The other one parks again while it owns the range; this one gets it back.
	if err := first.Park(t.Context(), letter("c c1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if err := second.HandleOwned(t.Context(), relay.Tenure{Lease: "l", Epoch: 4}, changes("c c2 2")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c1 too_large", "c2 held"}, line(t, lot, "c")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
}

func TestNothingIsSentWhileTheGatesAreUnknown(t *testing.T) {
	b, lot := &broker{}, lottest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	lot.Fail(errors.New("store is away"))
	err := r.Handle(t.Context(), changes("?", "a a1 1"))
	batch, ok := errors.AsType[*relay.BatchError](err)
	if !ok || batch.Class() != relay.Outage || len(batch.Failures) != 2 || b.sent != 0 {
		t.Fatalf("error %v with %d sent, want an outage and nothing sent", err, b.sent)
	}
	lot.Fail(nil)
	if err := r.Handle(t.Context(), changes("a a1 1")); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedParkingIsAnOutage(t *testing.T) {
	b, lot := &broker{}, lottest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := r.Park(t.Context(), letter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(t.Context(), nil); err != nil { // loads the gates
		t.Fatal(err)
	}
	lot.Fail(errors.New("store is away"))
	err := r.Handle(t.Context(), changes("a a2 2", "b b1 1"))
	batch, ok := errors.AsType[*relay.BatchError](err)
	if !ok || batch.Class() != relay.Outage || len(batch.Failures) != 1 || batch.Failures[0].ID != "a2" {
		t.Fatalf("error %v, want an outage for a2", err)
	}
	if len(b.got["b"]) != 1 || len(b.got["a"]) != 0 {
		t.Errorf("published %v, want b alone", b.got)
	}
}

func TestAnEventWithoutAKeyIsParkedAlone(t *testing.T) {
	b, lot := &broker{}, lottest.NewMemory()
	r := newRelay(t, b, withLot(lot, relay.Options{}))
	if err := r.Park(t.Context(), letter("?", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(t.Context(), changes("a a1 1")); err != nil || b.sent != 1 {
		t.Fatalf("error %v, %d sent", err, b.sent)
	}
}

func newDrainer(t *testing.T, lot relay.DrainLot, p relay.Publisher, token string, drained *[]string) *relay.Drainer {
	t.Helper()
	d, err := relay.NewDrainer(lot, lineDecoder{}, p, relay.DrainOptions{
		Owner: "host", Token: token, Now: time.Now, Batch: 3,
		Drained: func(_ context.Context, d relay.Drained) {
			if drained != nil {
				*drained = append(*drained, fmt.Sprintf("%s sent %d skip %v open %v %s", d.Key, d.Sent, d.Skip, d.Open, relay.ReasonOf(d.Err)))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parkAll(t *testing.T, r *relay.Relay, key string, n int) {
	t.Helper()
	if err := r.Park(t.Context(), letter(key+" "+key+"1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= n; i++ {
		if err := r.Handle(t.Context(), changes(fmt.Sprintf("%s %s%d %d", key, key, i, i))); err != nil {
			t.Fatal(err)
		}
	}
}

func intend(t *testing.T, lot *lottest.Memory, key string, i relay.Intent) {
	t.Helper()
	if _, err := lot.SetIntent(t.Context(), key, i); err != nil {
		t.Fatal(err)
	}
}

func TestARetryDrainsInOrderWhileNewEventsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, lottest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 8)
		var drained []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- newDrainer(t, lot, b, "t", &drained).Run(ctx) }()
		settle(time.Minute)
		if b.sent != 0 {
			t.Fatal("drained without an intent")
		}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann"})
		var want []string
		for n := 1; n <= 8; n++ {
			want = append(want, fmt.Sprintf("a%d", n))
		}
		for n := 9; n <= 200; n++ {
			if err := r.Handle(t.Context(), changes(fmt.Sprintf("a a%d %d", n, n))); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf("a%d", n))
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if _, err := lot.Gate(t.Context(), "a"); err == nil || len(drained) != 1 {
			t.Errorf("gate %v, drained %v; want it open after one try", err, drained)
		}
	})
}

func TestADrainStopsAtWhatIsStillRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, lottest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 2)
		if err := r.Handle(t.Context(), changes("a a3 ?", "a a4 4")); err != nil {
			t.Fatal(err)
		}
		var drained []string
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = newDrainer(t, lot, b, "t", &drained).Run(ctx) }()
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a3 invalid_event", "a4 held"}, line(t, lot, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		g, err := lot.Gate(t.Context(), "a")
		if err != nil || g.Intent != nil || g.Claim != nil || g.Attempts != 1 || g.Error == "" {
			t.Errorf("gate %+v, %v; want it closed, without intent and claim, with the error", g, err)
		}

		lot.Mend("a", "a3", []byte("a a3 3"))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		want := []string{"a sent 2 skip false open false invalid_event", "a sent 2 skip false open true unknown"}
		if diff := cmp.Diff(want, drained); diff != "" {
			t.Errorf("drained (-want +got):\n%s", diff)
		}
	})
}

func TestASkipLeavesARecordAndSendsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, lottest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = newDrainer(t, lot, b, "t", nil).Run(ctx) }()

		intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a2"})
		settle(10 * time.Second)
		if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Intent != nil || b.sent != 0 {
			t.Errorf("gate %+v, %v; want an event that is not the first to stay", g, err)
		}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1", By: "ann", Note: "test data"})
		settle(10 * time.Second)
		if diff := cmp.Diff([]string{"a2", "a3"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		skipped, _ := lot.Skipped(t.Context(), "a")
		if len(skipped) != 1 || skipped[0].Event.ID != "a1" || skipped[0].Intent.By != "ann" || skipped[0].Intent.Note != "test data" {
			t.Errorf("records %+v, want a1 by ann", skipped)
		}
	})
}

func TestADrainWaitsOutAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, lottest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 5)
		b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = newDrainer(t, lot, b, "t", nil).Run(ctx) }()
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		time.Sleep(4 * time.Second)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		settle(time.Minute)
		if diff := cmp.Diff([]string{"a1", "a2", "a3", "a4", "a5"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// TestOneDrainerHoldsTheClaim runs several drainers against a slow broker; one of them
// stands still in the middle, and the others go on once its claim is void.
func TestOneDrainerHoldsTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, lottest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 20)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stuck, ended atomic.Bool
		for n := range 3 {
			slow := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
				if stuck.CompareAndSwap(false, true) {
					<-ctx.Done() // the claim ends; nothing was sent
					ended.Store(true)
					return &relay.PublishError{Keys: []relay.KeyError{{Err: ctx.Err()}}}
				}
				if !ended.Load() {
					t.Error("another drainer sends while the claim is trusted")
				}
				time.Sleep(time.Second)
				return b.Publish(ctx, groups)
			})
			go func() { _ = newDrainer(t, lot, slow, fmt.Sprint("t", n), nil).Run(ctx) }()
		}
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		settle(5 * time.Minute)
		var want []string
		for n := 1; n <= 20; n++ {
			want = append(want, fmt.Sprintf("a%d", n))
		}
		if diff := cmp.Diff(want, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

// TestADrainerThatLostItsClaimChangesNothing takes the claim away while events are sent.
func TestADrainerThatLostItsClaimChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, lottest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 2)
		other := relay.Claim{Owner: "other", Token: "other", Beat: 1}
		robbed := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			g, err := lot.Gate(ctx, "a")
			if err != nil {
				t.Error(err)
			}
			g.Claim = &other
			if _, err := lot.Update(ctx, g); err != nil {
				t.Error(err)
			}
			return b.Publish(ctx, groups)
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		go func() { _ = newDrainer(t, lot, robbed, "t", nil).Run(ctx) }()
		settle(time.Second)
		g, err := lot.Gate(t.Context(), "a")
		if err != nil || g.Claim == nil || *g.Claim != other || len(line(t, lot, "a")) != 2 {
			t.Errorf("gate %+v, %v, line %v; want the other's claim and both events", g, err, line(t, lot, "a"))
		}
	})
}

// settle lets time pass and all goroutines of the bubble come to rest.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type publisherCtx func(ctx context.Context, groups []relay.Group) error

func (f publisherCtx) Publish(ctx context.Context, groups []relay.Group) error { return f(ctx, groups) }
