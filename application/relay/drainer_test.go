package relay_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// A failing store is polled less and less often. Its failures are not reported as drains.
func TestFailingStoreIsPolledLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		mem.Fail(errors.New("away"))
		failed, drained := &reportLog{}, &reportLog{}
		d := newDrainer(t, mem, publisherFunc(func([]relay.Group) error { return nil }), relay.DrainOptions{
			Poll: 5 * time.Second, PollFailed: func(_ context.Context, err error) { failed.add(err.Error()) },
		}, drained)
		run(t, d)
		time.Sleep(time.Hour)
		if n := len(failed.all()); n < 50 || n > 80 {
			t.Errorf("asked %d times in an hour, want about once a minute", n)
		}
		if lines := drained.all(); len(lines) != 0 {
			t.Errorf("reported of %v, nothing was drained", lines)
		}
		mem.Fail(nil)
		time.Sleep(2 * time.Minute)
		mem.Fail(errors.New("away again"))
		before := len(failed.all())
		time.Sleep(20 * time.Second)
		if n := len(failed.all()) - before; n < 2 {
			t.Errorf("asked %d times in 20 s after it had answered, want it each 5 s again", n)
		}
	})
}

func TestNewDrainerRequiresPorts(t *testing.T) {
	mem, ranges, r := parkedtest.NewMemory(), &owner{}, newRelay(t, &broker{}, nil)
	for name, err := range map[string]error{
		"store":  drainerError(nil, ranges, r, relay.DrainOptions{}),
		"ranges": drainerError(mem, nil, r, relay.DrainOptions{}),
		"relay":  drainerError(mem, ranges, nil, relay.DrainOptions{}),
		"Poll":   drainerError(mem, ranges, r, relay.DrainOptions{Poll: -1}),
		"Batch":  drainerError(mem, ranges, r, relay.DrainOptions{Batch: -1}),
		"large":  drainerError(mem, ranges, r, relay.DrainOptions{Batch: 91}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := drainerError(mem, ranges, r, relay.DrainOptions{}); err != nil {
		t.Error(err)
	}
}

func drainerError(store relay.DrainStore, ranges relay.Ranges, r *relay.Relay, opts relay.DrainOptions) error {
	_, err := relay.NewDrainer(store, ranges, r, opts)
	return err
}

// By default a drainer polls every 5 s and sends 90 events in one step.
func TestDrainerDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		parkAll(t, newRelay(t, &broker{}, withParked(mem, relay.Options{})), "a", 150)
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		ctx, cancel := context.WithCancel(t.Context())
		var looks []time.Time
		var sizes []string
		d, err := relay.NewDrainer(hooked{mem, func(_ context.Context, call string) error {
			if call == "Intents" {
				if looks = append(looks, time.Now()); len(looks) == 10 {
					cancel()
				}
			}
			return nil
		}}, &owner{}, newRelay(t, publisherFunc(func(groups []relay.Group) error {
			sizes = append(sizes, fmt.Sprint(len(groups[0].Messages)))
			return nil
		}), nil), relay.DrainOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
		want(t, "batches", sizes, "90", "60")
		for n := range looks[1:] {
			if pause := looks[n+1].Sub(looks[n]); pause < 4*time.Second || pause > 6*time.Second {
				t.Errorf("a look %s after the one before, want about 5 s", pause)
			}
		}
	})
}

// The end of the context is not reported as a failure of the store, and keys that the poll did not
// reach are not tried.
func TestContextEndIsNotReportedAsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		d := newDrainer(t, hooked{parkedtest.NewMemory(), func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}}, &broker{}, relay.DrainOptions{PollFailed: func(_ context.Context, err error) { t.Error(err) }}, nil)
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		mem, ranges := parkedtest.NewMemory(), &owner{}
		r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
		for n := range 30 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		ctx, cancel := context.WithCancel(t.Context())
		d := newDrainerOf(t, mem, ranges, publisherFunc(func([]relay.Group) error {
			cancel()
			return errBusy
		}), relay.DrainOptions{}, nil)
		if err := d.Run(ctx); err != nil || ranges.steps.Load() > 8 {
			t.Errorf("error %v, %d keys tried; want only those in progress", err, ranges.steps.Load())
		}
	})
}

// A refusal shows that the broker is available, so the poll continues.
func TestPollContinuesAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		var calls atomic.Int64
		r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
		for n := range 12 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		run(t, newDrainer(t, mem, publisherFunc(func([]relay.Group) error {
			if calls.Add(1)%3 == 0 {
				return errTooLarge
			}
			return errBusy
		}), relay.DrainOptions{}, nil))
		settle(time.Second)
		if calls.Load() != 12 {
			t.Errorf("%d keys were tried, want all", calls.Load())
		}
	})
}

// Any number of keys of other owners do not end a poll.
func TestPollSkipsKeysOfOtherOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for n := range 20 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		parkWaiting(t, r, "mine")
		run(t, newDrainerOf(t, mem, only("mine"), b, relay.DrainOptions{}, nil))
		settle(time.Second)
		if b.sent != 1 {
			t.Errorf("sent %v, want the event of the own key", b.got)
		}
	})
}

// only is the ownership of one key.
type only string

func (o only) Own(ctx context.Context, key string, do func(context.Context) error) error {
	if key != string(o) {
		return errors.Join(relay.ErrNotOwned, errors.New("another's"))
	}
	return do(ctx)
}

// A sent key shows that the broker is available, so the poll continues.
func TestPollContinuesWhileEventsAreAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
		for n := range 20 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		var calls atomic.Int64 // keys are drained at the same time
		run(t, newDrainer(t, mem, publisherFunc(func([]relay.Group) error {
			if calls.Add(1)%2 == 0 {
				return nil
			}
			return errBusy
		}), relay.DrainOptions{}, nil))
		settle(time.Second)
		if n := calls.Load(); n != 20 {
			t.Errorf("%d keys were tried, want all", n)
		}
	})
}

// A key is retried soon if even a part of its events was sent.
func TestPartialSendResetsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{fail: failing(errBusy, "a")}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkWaiting(t, r, "a")
		for n := 2; n <= 6; n++ {
			if failed := r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("a a%d %d", n, n))); failed != nil {
				t.Fatal(failed)
			}
		}
		run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
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

// A regained range is drained at once, because attempts without ownership cause no backoff.
func TestRegainedRangeHasNoBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem, ranges := &broker{fail: failing(errBusy, "a")}, parkedtest.NewMemory(), &owner{}
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 1)
		parkAll(t, r, "b", 1)
		run(t, newDrainerOf(t, mem, ranges, b, relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Hour + 3*time.Second)
		ranges.away.Store(true)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		setIntent(t, mem, "b", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Hour)
		ranges.away.Store(false)
		settle(7 * time.Second)
		if b.sent != 2 {
			t.Errorf("%d events sent within a look, want both", b.sent)
		}
	})
}

func TestNewIntentEndsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{fail: failing(errBusy, "a")}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 1)
		var tries atomic.Int32
		run(t, newDrainer(t, mem, publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			tries.Add(1)
			return b.Publish(ctx, groups)
		}), relay.DrainOptions{}, nil))
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Hour)
		for before := tries.Load(); tries.Load() == before; {
			settle(time.Second)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()}) // a minute before the next try
		settle(7 * time.Second)
		if b.sent != 1 {
			t.Error("an event waits out the pause of an earlier intent")
		}
	})
}

// Each poll returns other keys, and none of them is owned here.
func TestDrainerForgetsKeysWithoutAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const polls, keys = 20, 10_000
		away := &owner{}
		away.away.Store(true)
		away.steps.Store(-polls * keys)
		var number atomic.Int32
		store := changing{hooked{parkedtest.NewMemory(), func(context.Context, string) error { return nil }}, &number, keys}
		before := heap()
		run(t, newDrainerOf(t, store, away, &broker{}, relay.DrainOptions{Poll: time.Second}, nil))
		for number.Load() < polls {
			settle(time.Second)
		}
		if grown := heap() - before; grown > 8<<20 {
			t.Errorf("%d MB are kept after %d polls", grown>>20, polls)
		}
	})
}

// changing is a store that returns other gates in each poll.
type changing struct {
	hooked
	polls *atomic.Int32
	keys  int
}

func (s changing) Intents(context.Context) ([]relay.Gate, error) {
	n, gates := s.polls.Add(1), make([]relay.Gate, s.keys)
	for i := range gates {
		gates[i] = relay.Gate{Key: fmt.Sprint(n, " ", i), Closing: relay.Closing{Auto: true}}
	}
	return gates, nil
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // fewer than 2^63
}
