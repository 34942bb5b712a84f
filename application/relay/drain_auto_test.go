package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
)

// The broker is down for a day. The key keeps its intent, is tried at most once a minute, and is
// drained when the broker is back.
func TestAutoClosedKeyIsDrainedAutomatically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		b.fail = map[string]relay.KeyError{"a": {Err: errBusy}}
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		if err := r.Park(t.Context(), waitingDeadLetter("a a1 1", 1)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3")); failed != nil {
			t.Fatal(failed)
		}
		drained, before := &reportLog{}, gateOf(t, mem, "a")
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, drained))
		settle(time.Minute)
		if n := len(drained.all()); n < 3 || n > 6 {
			t.Errorf("%d tries in the first minute, want pauses of 5 s, 10 s, 20 s: %v", n, drained.all())
		}
		settle(24 * time.Hour)
		if n := len(drained.all()); n < 1200 || n > 1450 {
			t.Errorf("%d tries in a day, want one a minute", n)
		}
		if g := gateOf(t, mem, "a"); g != before || g.EffectiveIntent() == nil {
			t.Errorf("gate %+v, want it wanted as it was, and nothing written", g)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		settle(70 * time.Second)
		if diff := cmp.Diff([]string{"a1", "a2", "a3"}, b.got["a"]); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if _, err := mem.Gate(t.Context(), "a"); !fault.Is(err, fault.NotFound) {
			t.Errorf("gate: %v, want it open", err)
		}
	})
}

func TestRefusedAutoClosedKeyWaitsForOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		if err := r.Park(t.Context(), waitingDeadLetter("a a1 1", 1)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2@2", "a a3 3@3")); failed != nil {
			t.Fatal(failed)
		}
		refusing := publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			n := slices.IndexFunc(groups[0].Messages, func(m relay.Message) bool { return m.ID == "a2" })
			groups[0].Messages = groups[0].Messages[:n]
			return errors.Join(&relay.PublishError{Keys: []relay.KeyError{{Sent: n, Err: errTooLarge}}}, b.Publish(ctx, groups))
		})
		drained := &reportLog{}
		run(t, newDrainer(t, mem, refusing, relay.DrainOptions{}, drained))
		settle(time.Hour)
		g := gateOf(t, mem, "a")
		closing := relay.Closing{Event: "a2", Reason: "too_large", Error: errTooLarge.Error(), At: g.TriedAt}
		if g.Closing != closing || g.TriedAt.Location() != time.UTC || time.Since(g.TriedAt) < 59*time.Minute || g.EffectiveIntent() != nil {
			t.Errorf("gate %+v, want it parked because of a2, an hour ago", g)
		}
		if diff := cmp.Diff([]string{"a2 held", "a3 held"}, parkedIDs(t, mem, "a")); diff != "" || len(drained.all()) != 1 {
			t.Errorf("drained %v, parked (-want +got):\n%s", drained.all(), diff)
		}
	})
}

// An ambiguous refusal does not make a key wait for an operator until the broker has accepted
// something else.
func TestAmbiguousRefusalsKeepKeysAutoClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		notAllowed := &relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}
		b.fail = map[string]relay.KeyError{"a": {Err: notAllowed}, "b": {Err: notAllowed}}
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for _, key := range []string{"a", "b"} {
			if err := r.Park(t.Context(), waitingDeadLetter(key+" "+key+"1 1", 1)); err != nil {
				t.Fatal(err)
			}
		}
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		settle(time.Hour)
		for _, key := range []string{"a", "b"} {
			if g, err := mem.Gate(t.Context(), key); err != nil || !g.Closing.Auto {
				t.Errorf("gate %+v, %v; want it to wait for the broker", g, err)
			}
		}
		b.mu.Lock()
		delete(b.fail, "a")
		b.mu.Unlock()
		settle(5 * time.Minute)
		if g, err := mem.Gate(t.Context(), "b"); err != nil || g.Closing.Auto || g.Closing.Reason != "not_allowed" {
			t.Errorf("gate %+v, %v; want b refused once a was accepted", g, err)
		}
	})
}

// During an outage the drainer sends one key at a time, as a probe, a different one each time.
func TestOutageIsProbedWithOneParkedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
		for n := range 30 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		var mu sync.Mutex
		keys, calls := map[string]bool{}, 0 // guarded by mu
		var prepared atomic.Int64
		counted := hooked{mem, func(_ context.Context, call string) error {
			if call == "First" {
				prepared.Add(1)
			}
			return nil
		}}
		tried := func() (int, int) {
			mu.Lock()
			defer mu.Unlock()
			return len(keys), calls
		}
		away := publisherCtx(func(_ context.Context, groups []relay.Group) error {
			mu.Lock()
			defer mu.Unlock()
			calls++
			keys[groups[0].Key] = true
			own := *errBusy
			return &own
		})
		run(t, newDrainer(t, counted, away, relay.DrainOptions{}, nil))
		settle(time.Second)
		n, before := tried()
		if n > 10 { // two failures do not pause the relay yet, and eight keys are in progress
			t.Errorf("tried %d keys at once, want those that were in progress", n)
		}
		prepared.Store(0)
		settle(10 * time.Minute)
		if n, calls := tried(); n != 30 || calls-before > 150 || prepared.Load() > int64(calls-before+10) {
			t.Errorf("tried %d keys by %d sends in ten minutes, and %d were read; want each, one per poll", n, calls-before, prepared.Load())
		}
	})
}

// A message accepted before the first attempt of a key does not show that the refusal of that
// attempt is the message's fault.
func TestAcceptanceBeforeFirstDrainIsNoEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 1)
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Minute)
		b.mu.Lock()
		b.fail = failing(&relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}, "b")
		sent := b.sent
		b.mu.Unlock()
		parkWaiting(t, r, "b")
		settle(time.Hour)
		if g, err := mem.Gate(t.Context(), "b"); err != nil || !g.Closing.Auto || sent != 1 {
			t.Errorf("%d sent, gate %+v, %v; want it to wait for the broker", sent, g, err)
		}
	})
}

// A message accepted before the last attempt of a key does not show that its refusal is the
// message's fault.
func TestAcceptanceBeforeLastDrainIsNoEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{fail: failing(errBusy, "b")}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkWaiting(t, r, "b")
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
		settle(time.Minute)
		parkWaiting(t, r, "a")
		settle(10 * time.Minute) // a is sent, b tried many times since
		b.mu.Lock()
		b.fail = failing(errNotAllowed, "b")
		b.mu.Unlock()
		settle(10 * time.Minute)
		if g, err := mem.Gate(t.Context(), "b"); err != nil || !g.Closing.Auto || b.sent != 1 {
			t.Errorf("gate %+v, %v, %d sent; want b to wait for the broker", g, err, b.sent)
		}
	})
}

// A parked key is drained while another shard than its own is paused, also in a poll in which a key of that
// shard has its turn first.
func TestPausedShardStopsNoParkedKeyOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		b := &broker{fail: failing(errBusy, "b1", "b2", "b3", "b4")}
		r := newRelay(t, b, twoShards(*withParked(mem, relay.Options{})))
		parkWaiting(t, r, "b4", "a1")
		setIntent(t, mem, "b4", relay.Intent{Verb: relay.VerbRetry}) // before those without one
		r.Handle(t.Context(), relay.Ownership{}, changes("b1 y1 1", "b2 y2 1", "b3 y3 1"))
		d, err := relay.NewDrainer(mem, &owner{}, r, relay.DrainOptions{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, d)
		settle(50 * time.Millisecond) // less than the shortest pause
		if keys, err := mem.Closed(t.Context()); err != nil || len(keys) != 1 || keys[0] != "b4" {
			t.Errorf("parked after the first poll: %v, %v; want b4 alone", keys, err)
		}
	})
}

// Parked keys are drained several at a time, also between many keys of a shard that is paused.
func TestPausedShardDelaysNoParkedKeysOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		paused := func(key string) bool { return strings.HasSuffix(key, "-b") }
		o := withParked(mem, relay.Options{Shards: []string{"a", "b"}, ShardOf: func(key string) int { return strings.Count(key, "-b") }})
		r := newRelay(t, publisherFunc(func(groups []relay.Group) error {
			if paused(groups[0].Key) {
				return &relay.Error{Class: relay.Outage, Reason: "busy"}
			}
			time.Sleep(time.Second)
			return nil
		}), o)
		for i := range 16 {
			parkWaiting(t, r, fmt.Sprintf("%02d-a", i), fmt.Sprintf("%02d-b", i))
		}
		for i := range 3 {
			r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("%d-b x%d 1", i, i)))
		}
		d, err := relay.NewDrainer(mem, &owner{}, r, relay.DrainOptions{Poll: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		run(t, d)
		settle(4 * time.Second)
		keys, err := mem.Closed(t.Context())
		if left := len(slices.DeleteFunc(keys, paused)); err != nil || left != 0 {
			t.Errorf("%d of 16 keys are still parked after the time of two rounds, %v", left, err)
		}
	})
}
