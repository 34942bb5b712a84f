package relay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

// However many pages of however many keys wait for a broker, it is asked about as often
// as for one; and all of them go on once one of them gets through.
func TestPagesTakeTurnsDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, length = 8, 10 * time.Minute
		b := &counted{poisoned: poisoned{away: true}}
		r := newRelay(t, b, &relay.Options{Patience: time.Hour})
		var running sync.WaitGroup
		for n := range pages {
			running.Go(func() {
				if err := r.Handle(t.Context(), changes(fmt.Sprintf("a%d x%d 1", n, n), fmt.Sprintf("b%d y%d 1", n, n))); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		b.lock.Lock()
		before := b.calls
		b.lock.Unlock()
		time.Sleep(length)
		synctest.Wait()
		b.lock.Lock()
		calls := b.calls - before
		b.away = false
		b.lock.Unlock()
		if most := int(length/(4*time.Second)) + pages; calls == 0 || calls > most {
			t.Errorf("%d sends in %s, want 1 to %d", calls, length, most)
		}
		began := time.Now()
		running.Wait()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("all was sent %s after the outage", took)
		}
	})
}

// counted counts the calls.
type counted struct {
	poisoned
	lock  sync.Mutex // guards calls and poisoned.away
	calls int
}

func (c *counted) Publish(ctx context.Context, groups []relay.Group) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.calls++
	return c.poisoned.Publish(ctx, groups)
}

// During an outage keys go ahead in turns: one that always fails, for a reason that is
// taken for the broker's, does not stop the others.
func TestAKeyThatFailsDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{fail: map[string]relay.KeyError{"a": {Err: errBusy}, "b": {Untried: true, Err: errBusy}, "c": {Untried: true, Err: errBusy}}}
		r := newRelay(t, b, &relay.Options{Patience: 10 * time.Second})
		done := make(chan error, 1)
		go func() { done <- r.Handle(t.Context(), changes("a a1 1", "b b1 1", "c c1 1")) }()
		synctest.Wait()
		b.mu.Lock()
		b.fail = map[string]relay.KeyError{"a": {Err: errBusy}}
		b.mu.Unlock()
		err := <-done
		if len(b.got["b"]) != 1 || len(b.got["c"]) != 1 || len(failures(err)) != 1 {
			t.Errorf("sent %v, then %v; want all but a", b.got, err)
		}
	})
}
