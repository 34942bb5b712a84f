package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"feedbox/changefeed"
)

var (
	errCrashed    = errors.New("simulation: the host crashed")
	errNotAllowed = errors.New("simulation: deleting is not allowed")
	errUnlucky    = errors.New("simulation: the service failed")
	errLost       = errors.New("simulation: the answer got lost")
	errHandler    = errors.New("simulation: the handler failed")
)

// faultSource injects the faults of a service or of the handlers.
type faultSource struct {
	mu  sync.Mutex // guards the fields below
	rng *rand.Rand
	faultRates
}

// faultRates is the probability of each fault.
type faultRates struct {
	throttle float64
	fail     float64       // before the call takes effect
	lose     float64       // after it did
	old      float64       // of serving an old version
	oldest   time.Duration // largest age of an old version
	latency  time.Duration // longest latency
	silent   float64       // of never answering a read of the feed
}

func (w *faultSource) set(next faultRates) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faultRates = next
}

// stale returns the age of the version to serve; 0 is the current one.
func (w *faultSource) stale() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rng.Float64() >= w.old || w.oldest == 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(w.oldest))) + 1
}

func (w *faultSource) delay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latency == 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(w.latency)))
}

// before decides whether a call fails.
func (w *faultSource) before() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch p := w.rng.Float64(); {
	case p < w.throttle:
		return &changefeed.ThrottledError{RetryAfter: time.Duration(w.rng.IntN(1000)) * time.Millisecond, Err: errUnlucky}
	case p < w.throttle+w.fail:
		return errUnlucky
	}
	return nil
}

// answers returns once a read may be answered: at once, or never before ctx ends.
func (w *faultSource) answers(ctx context.Context) error {
	w.mu.Lock()
	silent := w.rng.Float64() < w.silent
	w.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	return ctx.Err()
}

// failAt returns the index of the item at which a handler call of n items fails, or n if it
// does not.
func (w *faultSource) failAt(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == 0 || w.rng.Float64() >= w.fail {
		return n
	}
	return w.rng.IntN(n)
}

func (w *faultSource) after() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rng.Float64() < w.lose {
		return errLost
	}
	return nil
}

// wait sleeps in virtual time.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
