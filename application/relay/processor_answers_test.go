package relay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/relay/relayfeed"
)

// process runs the processor with a relay until the test ends.
func process(t *testing.T, feed *logFeed, b relay.Publisher, onDeadLetter func(changefeed.DeadLetter)) {
	t.Helper()
	h := relayfeed.NewHandler(newRelay(t, b, nil))
	p, err := changefeed.New(feed, memstore.New(nil), h, &changefeed.Options{
		Host: "a", MaxAttempts: 3, Observer: &changefeed.Observer{},
		DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error { onDeadLetter(l); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// The processor follows the class of each failure: an accepted event is done, a refusal counts as
// an attempt, and an outage or waiting for an earlier event does not.
func TestProcessorFollowsFailureClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, feed := &broker{fail: failing(errBusy, "b")}, &logFeed{}
		b.fail["a"] = relay.KeyError{Err: errTooLarge}
		var letters []string
		feed.append("a a1 1", "b b1 1", "c c1 1", "a a2 2", "c c2 2", "b b2 2")
		process(t, feed, b, func(l changefeed.DeadLetter) {
			b.mu.Lock()
			defer b.mu.Unlock()
			letters = append(letters, fmt.Sprintf("%s after %d, waiting %t", l.Raw, l.Attempts, l.Waiting))
			delete(b.fail, "a")
		})
		time.Sleep(time.Hour)
		b.mu.Lock()
		want(t, "letters", letters, "a a1 1 after 3, waiting false")
		b.fail = nil
		b.mu.Unlock()
		time.Sleep(time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		want(t, "letters", letters, "a a1 1 after 3, waiting false")
		want(t, "a", b.got["a"], "a2")
		want(t, "b", b.got["b"], "b1", "b2")
		want(t, "c", b.got["c"], "c1", "c2")
	})
}

// Events that wait for the broker are retried when the breaker probes it, and not after a growing
// backoff of their own.
func TestEverythingIsSentSoonAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, feed := &broker{fail: map[string]relay.KeyError{}}, &logFeed{}
		for n := range 50 {
			key := fmt.Sprint("k", n)
			b.fail[key] = failing(errBusy, key)[key]
			feed.append(key + " " + key + ".1 1")
		}
		process(t, feed, b, func(l changefeed.DeadLetter) { t.Errorf("%s is dead-lettered", l.Raw) })
		for range 10 {
			time.Sleep(2*time.Minute + 7*time.Second)
			b.mu.Lock()
			fail, sent := b.fail, b.sent
			b.fail = nil
			b.mu.Unlock()
			time.Sleep(7 * time.Second)
			b.mu.Lock()
			if b.sent != sent+50 {
				t.Errorf("%d of 50 events sent within 7 s after the outage", b.sent-sent)
			}
			b.fail = fail
			b.mu.Unlock()
			for n := range 50 {
				feed.append(fmt.Sprintf("k%d k%d.n 1", n, n))
			}
		}
	})
}

// A dead letter of an event that waited closes the gate automatically; one of a refused event does
// not.
func TestWaitingDeadLetterClosesGateAutomatically(t *testing.T) {
	mem := parkedtest.NewMemory()
	h := relayfeed.NewHandler(newRelay(t, &broker{}, withParked(mem, relay.Options{})))
	for key, waiting := range map[string]bool{"a": true, "b": false} {
		if err := h.Park(t.Context(), changefeed.DeadLetter{Raw: []byte(key + " " + key + "1 1"), LSN: 1, Waiting: waiting, Err: errBusy}); err != nil {
			t.Fatal(err)
		}
		if g, err := mem.Gate(t.Context(), key); err != nil || g.Closing.Auto != waiting {
			t.Errorf("gate of %s %+v (%v), want automatic: %t", key, g, err, waiting)
		}
	}
}
