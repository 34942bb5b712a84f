package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// However many pages are waiting, an unavailable broker receives one key at a time, with growing
// pauses. Once it accepts again, all pages are sent.
func TestUnavailableBrokerIsProbedWithOneKey(t *testing.T) {
	for _, failure := range []*relay.Error{errBusy, errFull, {Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}} {
		synctest.Test(t, func(t *testing.T) {
			const pages, length = 16, 10 * time.Minute
			var keys []string
			for n := range pages {
				keys = append(keys, fmt.Sprint("a", n), fmt.Sprint("b", n), fmt.Sprint("c", n))
			}
			b := &countingBroker{broker: broker{fail: failing(failure, keys...)}}
			var pauses atomic.Int64
			r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) {
				pauses.Add(1)
				if relay.ReasonOf(p.Err) != failure.Reason || !p.Until.After(time.Now()) {
					t.Errorf("paused until %s for %v", p.Until, p.Err)
				}
			}}})
			var running sync.WaitGroup
			for n := range pages {
				running.Go(func() { // retries at NotBefore, as a lane does
					page := changes(fmt.Sprintf("a%d x%d 1", n, n), fmt.Sprintf("b%d y%d 1", n, n), fmt.Sprintf("c%d z%d 1", n, n))
					for {
						failed := r.Handle(t.Context(), relay.Ownership{}, page)
						if failed == nil {
							return
						}
						if relay.ClassOf(failed[0].Err) == relay.Refused {
							t.Errorf("%v, want it to wait", failed)
							return
						}
						time.Sleep(max(time.Millisecond, time.Until(notBefore(failed))))
					}
				})
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			b.mu.Lock()
			before := b.groups
			b.mu.Unlock()
			time.Sleep(length)
			synctest.Wait()
			b.mu.Lock()
			sends := b.groups - before
			b.fail = nil
			b.mu.Unlock()
			if most := int(length / (4 * time.Second)); sends == 0 || sends > most {
				t.Errorf("%s: %d keys sent in %s, want 1 to %d", failure.Reason, sends, length, most)
			}
			began := time.Now()
			running.Wait()
			if took := time.Since(began); took > 6*time.Second || b.sent != 3*pages {
				t.Errorf("%d events sent %s after the broker came back", b.sent, took)
			}
			if pauses.Load() == 0 {
				t.Error("no pause was reported")
			}
		})
	}
}

// During a pause, a page fails without a send, and NotBefore is the end of the pause.
func TestPauseSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the cause")
		b := &countingBroker{broker: broker{fail: failing(&relay.Error{Reason: "busy", Err: cause}, "a", "b", "c")}}
		r := newRelay(t, b, nil)
		want(t, "first", classes(r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))), "a1 outage", "b1 outage", "c1 outage")
		b.fail = nil
		calls := b.calls
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("d d1 1", "e e1 1", "x x1 ?"))
		want(t, "during the pause", classes(failed), "d1 outage", "e1 outage", "x1 refused")
		if err := failed[0].Err; relay.ReasonOf(err) != "busy" || !errors.Is(err, cause) {
			t.Errorf("d1 waits for %v, want the cause of the pause", err)
		}
		if wait := time.Until(notBefore(failed)); b.calls != calls || wait < 80*time.Millisecond || wait > 120*time.Millisecond {
			t.Errorf("%d sends, wait for %s; want none and about 100 ms", b.calls-calls, wait)
		}
		time.Sleep(time.Until(notBefore(failed)))
		for _, sends := range []int{2, 1} { // first the probe and the rest; then everything at once
			b.groups, b.calls = 0, 0
			failed := r.Handle(t.Context(), relay.Ownership{}, changes("x x1 ?", "y y1 ?", "d d1 1", "e e1 1", "f f1 1"))
			if want(t, "after the pause", classes(failed), "x1 refused", "y1 refused"); b.groups != 3 || b.calls != sends {
				t.Errorf("%d groups in %d sends; want 3 in %d", b.groups, b.calls, sends)
			}
		}
	})
}

// Each probe uses another key, because one that always fails would extend the pause forever.
func TestProbesTakeKeysInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: failing(errBusy, "a", "b", "c")}
		r := newRelay(t, b, nil)
		page := changes("a a1 1", "b b1 1", "c c1 1")
		failed := r.Handle(t.Context(), relay.Ownership{}, page)
		b.fail = failing(errBusy, "a")
		for range 3 {
			time.Sleep(time.Until(notBefore(failed)))
			if failed = r.Handle(t.Context(), relay.Ownership{}, page); len(b.got["b"]) > 0 {
				break
			}
		}
		want(t, "after the outage", classes(failed), "a1 outage")
		if len(b.got["b"]) == 0 || len(b.got["c"]) == 0 {
			t.Errorf("sent %v, want all but a", b.got)
		}
	})
}

// A new outage does not continue with the pauses of the last one.
func TestNewOutageStartsWithShortPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		r := newRelay(t, b, nil)
		page := changes("a a1 1", "b b1 1", "c c1 1")
		for range 2 {
			b.fail = failing(errBusy, "a", "b", "c")
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			if wait := time.Until(notBefore(failed)); wait <= 0 || wait > 150*time.Millisecond {
				t.Errorf("the first pause is %s, want about 100 ms", wait)
			}
			for range 10 {
				time.Sleep(time.Until(notBefore(failed)))
				failed = r.Handle(t.Context(), relay.Ownership{}, page)
			}
			if wait := time.Until(notBefore(failed)); wait < 4*time.Second || wait > 6*time.Second {
				t.Errorf("the last pause is %s, want about 5 s", wait)
			}
			b.fail = nil
			time.Sleep(time.Until(notBefore(failed)))
			if failed := r.Handle(t.Context(), relay.Ownership{}, page); failed != nil {
				t.Error(failed)
			}
		}
	})
}

// Of several causes, a pause reports the one that an operator must fix.
func TestPauseReportsBlockedCauseFirst(t *testing.T) {
	b := &broker{fail: failing(errBusy, "a", "c")}
	b.fail["b"] = relay.KeyError{Err: errFull}
	var reported []string
	r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) { reported = append(reported, relay.ReasonOf(p.Err)) }}})
	_ = r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
	want(t, "reported", reported, "entity_full")
}

// When a pause ends, one page sends the probe and the others wait for its result.
func TestOnlyOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		groups, most := 0, 0
		away := true
		r := newRelay(t, publisherFunc(func(g []relay.Group) error {
			mu.Lock()
			groups += len(g)
			most = max(most, groups)
			failed := away
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			groups -= len(g)
			if !failed {
				return nil
			}
			var all relay.PublishError
			for i := range g {
				own := *errBusy
				all.Keys = append(all.Keys, relay.KeyError{Group: i, Err: &own})
			}
			return &all
		}), nil)
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		most = 0
		var running sync.WaitGroup
		for n := range 8 {
			running.Go(func() {
				_ = r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("x%d x 1", n), fmt.Sprintf("y%d y 1", n)))
			})
		}
		running.Wait()
		if most != 1 {
			t.Errorf("%d keys were sent at once to a broker that is away, want 1", most)
		}
	})
}

// Pauses double from 100 ms to 5 s, with 20 % jitter.
func TestPausesDoubleUpToLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, &broker{fail: failing(errBusy, "a", "b", "c")}, nil)
		page := changes("a a1 1", "b b1 1", "c c1 1")
		length := 100 * time.Millisecond
		for n := range 300 {
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			wait := time.Until(notBefore(failed))
			if wait < length*8/10 || wait > length*12/10 {
				t.Fatalf("pause %d is %s, want about %s", n, wait, length)
			}
			length = min(2*length, 5*time.Second)
			time.Sleep(wait - time.Nanosecond)
			if early := r.Handle(t.Context(), relay.Ownership{}, page); !notBefore(early).Equal(notBefore(failed)) {
				t.Fatalf("a send before the end of pause %d", n)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// A page that loses its range during the probe of another page sends nothing.
func TestContextEndDuringProbeSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &countingBroker{broker: broker{fail: failing(errBusy, "a", "b", "c")}}
		slow := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			defer time.Sleep(time.Minute)
			return b.Publish(ctx, groups)
		})
		r := newRelay(t, slow, nil)
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		go r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := b.calls
		if failed := r.Handle(ctx, relay.Ownership{}, changes("d d1 1")); len(failed) != 1 || b.calls != calls {
			t.Errorf("failed %v, %d sends; want d1 to fail unsent", failed, b.calls-calls)
		}
		time.Sleep(time.Hour)
	})
}

// The reported cause is that of the current outage, not of the last one.
func TestPauseReportsCauseOfItsOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		var reported []string
		r := newRelay(t, b, &relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) { reported = append(reported, relay.ReasonOf(p.Err)) }}})
		page := changes("a a1 1", "b b1 1", "c c1 1")
		for _, outage := range []*relay.Error{errFull, errBusy} {
			b.fail = failing(outage, "a", "b", "c")
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			b.fail = nil
			time.Sleep(time.Until(notBefore(failed)))
			if failed := r.Handle(t.Context(), relay.Ownership{}, page); failed != nil {
				t.Error(failed)
			}
		}
		want(t, "reported", reported, "entity_full", "busy")
	})
}

// downBroker fails each key separately until back is set. Sending key slow takes a minute, and
// sending key stuck an hour.
type downBroker struct {
	countingBroker
	back atomic.Bool
}

func (b *downBroker) Publish(ctx context.Context, groups []relay.Group) error {
	switch groups[0].Key {
	case "slow":
		time.Sleep(time.Minute)
		return nil
	case "stuck":
		time.Sleep(time.Hour)
	}
	if b.back.Load() {
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
	}
	return b.countingBroker.Publish(ctx, groups)
}

// An accepted message ends the pause even while a probe hangs.
func TestAcceptedMessageEndsPauseDuringProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &downBroker{}
		b.fail = failing(errBusy, "a", "b", "c")
		r := newRelay(t, b, nil)
		go r.Handle(t.Context(), relay.Ownership{}, changes("slow s1 1"))
		synctest.Wait()
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		go r.Handle(t.Context(), relay.Ownership{}, changes("stuck t1 1"))
		settle(time.Minute)
		began := time.Now()
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("d d1 1")); failed != nil || time.Since(began) != 0 {
			t.Errorf("failed %v after %s, want it sent at once", failed, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}

// Pages that waited for a probe send everything at once after it was accepted.
func TestAcceptedProbeReleasesWaitingPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &downBroker{}
		b.fail = failing(errBusy, "a", "b", "c")
		r := newRelay(t, b, nil)
		failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1"))
		time.Sleep(time.Until(notBefore(failed)))
		b.back.Store(true)
		calls := b.calls
		go r.Handle(t.Context(), relay.Ownership{}, changes("stuck t1 1"))
		synctest.Wait()
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1")); failed != nil || b.calls != calls+2 {
			t.Errorf("failed %v, %d sends; want one of the probe and one of all", failed, b.calls-calls)
		}
	})
}

// twoShards has the keys that begin with "b" in shard "b", and all others in shard "a".
func twoShards(o relay.Options) *relay.Options {
	o.Shards, o.ShardOf = []string{"a", "b"}, func(key string) int {
		if key[0] == 'b' {
			return 1
		}
		return 0
	}
	return &o
}

// An outage of one shard pauses that shard alone. It blames no key of it, however many of the other shard
// are accepted, so nothing is parked.
func TestOutageOfOneShardBlamesNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &countingBroker{broker: broker{fail: failing(errBusy, "b1", "b2", "b3", "b4")}}
		var paused sync.Map
		r := newRelay(t, b, twoShards(relay.Options{Observer: relay.Observer{Paused: func(_ context.Context, p relay.Pause) {
			paused.Store(p.Shard, true)
		}}}))
		page := changes("a1 x1 1", "b1 y1 1", "b2 y2 1", "a2 x2 1", "b3 y3 1", "b4 y4 1")
		for n := range 100 {
			failed := r.Handle(t.Context(), relay.Ownership{}, page)
			if got := failures(failed); len(got) != 4 || got[0] != "1 y1 false" || got[3] != "5 y4 false" {
				t.Fatalf("turn %d: failed %v", n, got)
			}
			for _, f := range failed {
				if f.Blamed {
					t.Fatalf("turn %d: %s is blamed for the outage of its shard", n, f.ID)
				}
			}
			time.Sleep(time.Second)
		}
		if _, a := paused.Load("a"); a {
			t.Error("the shard that accepts everything was paused")
		}
		if _, ok := paused.Load("b"); !ok {
			t.Error("the shard that accepts nothing was not paused")
		}
		if len(b.got["a1"]) != 100 || b.groups > 200+4*3+100 {
			t.Errorf("a1 was accepted %d times of 100, and %d groups were sent", len(b.got["a1"]), b.groups)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		time.Sleep(10 * time.Second)
		if failed := r.Handle(t.Context(), relay.Ownership{}, page); failed != nil {
			t.Errorf("after the outage: %v", failed)
		}
	})
}

// A probe that is not answered delays no page but its own. A key of the shard waits a second at least.
func TestProbeOfOneShardDelaysNoOtherPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, silent := make(chan struct{}), false
		r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
			if groups[0].Key[0] != 'b' {
				return nil
			}
			if silent {
				<-release
			}
			own := *errBusy
			return &own
		}), twoShards(relay.Options{}))
		for _, key := range []string{"b1", "b2", "b3"} {
			r.Handle(t.Context(), relay.Ownership{}, changes(key+" y 1"))
		}
		silent = true
		time.Sleep(10 * time.Second)
		probe := make(chan []relay.Failure, 1)
		go func() { probe <- r.Handle(t.Context(), relay.Ownership{}, changes("b1 y1 1")) }()
		synctest.Wait()
		began, other := time.Now(), make(chan []relay.Failure, 1)
		go func() { other <- r.Handle(t.Context(), relay.Ownership{}, changes("a1 x1 1", "b2 y2 1")) }()
		synctest.Wait()
		select {
		case failed := <-other:
			if len(failed) != 1 || failed[0].ID != "y2" || failed[0].Blamed || notBefore(failed).Sub(began) != time.Second {
				t.Errorf("during the probe: %+v", failed)
			}
		default:
			t.Error("a page waits for the probe")
		}
		close(release)
		<-probe
	})
}

// A shard that refuses all keys is paused because its set-up may be at fault. A key that encounters the probe of
// another one must not lose an attempt, and its gate must not wait for an operator.
func TestRefusalsOfAShardBlockKeysDuringItsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, silent := make(chan struct{}), false
		mem := parkedtest.NewMemory()
		r := newRelay(t, publisherFunc(func([]relay.Group) error {
			if silent {
				<-release
			}
			own := *errNotAllowed
			return &own
		}), twoShards(*withParked(mem, relay.Options{})))
		parkWaiting(t, r, "b4")
		for _, key := range []string{"b1", "b2", "b3"} {
			r.Handle(t.Context(), relay.Ownership{}, changes(key+" y 1"))
		}
		silent = true
		time.Sleep(10 * time.Second)
		probe := make(chan []relay.Failure, 1)
		go func() { probe <- r.Handle(t.Context(), relay.Ownership{}, changes("b1 y1 1")) }()
		synctest.Wait()
		want(t, "during the probe", classes(r.Handle(t.Context(), relay.Ownership{}, changes("b2 y2 1"))), "y2 blocked")
		d, err := relay.NewDrainer(mem, &owner{}, r, relay.DrainOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Drain(t.Context(), "b4"); relay.ClassOf(err) != relay.Blocked {
			t.Errorf("the drain returned %v, want the fault of the broker", err)
		}
		if g := gateOf(t, mem, "b4"); !g.Closing.Auto || g.Attempts != 0 {
			t.Errorf("the gate is %+v, want it to wait for the broker", g)
		}
		close(release)
		want(t, "the probe", classes(<-probe), "y1 blocked")
	})
}

// The possible duplicates of all shards are reported, because each broker has a duplicate window.
func TestResentEventsOfAllShardsAreCounted(t *testing.T) {
	var sum relay.Summary
	r := newRelay(t, &broker{fail: failing(errBusy, "a1", "b1")}, twoShards(relay.Options{Observer: relay.Observer{
		Handled: func(_ context.Context, s relay.Summary) { sum = s },
	}}))
	for _, resent := range []int{0, 2} {
		if r.Handle(t.Context(), relay.Ownership{}, changes("a1 x1 1", "b1 y1 1", "a2 x2 1")); sum.Resent != resent {
			t.Errorf("%d events were sent again, want %d", sum.Resent, resent)
		}
	}
}

// A panic of an observer in a shard is one of Handle, for the caller to recover.
func TestPanicInAShardIsThatOfHandle(t *testing.T) {
	r := newRelay(t, &broker{fail: failing(errBusy, "b1", "b2", "b3")}, twoShards(relay.Options{Observer: relay.Observer{Paused: func(context.Context, relay.Pause) {
		panic("observer")
	}}}))
	defer func() {
		if p := recover(); p != "observer" {
			t.Errorf("recovered %v", p)
		}
	}()
	r.Handle(t.Context(), relay.Ownership{}, changes("a1 x1 1", "b1 y1 1", "b2 y2 1", "b3 y3 1"))
	t.Error("no panic")
}

func TestSeveralShardsNeedShardOf(t *testing.T) {
	if _, err := relay.New(lineDecoder{}, &broker{}, &relay.Options{Shards: []string{"a", "b"}}); err == nil {
		t.Error("accepted two shards without ShardOf")
	}
}
