package changefeed

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Clock is the host's own monotonic clock. It alone decides ownership; a wall clock can
// only make an owner renew its lease, see Options.Now. Implementations are safe for
// concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own once d has passed, unless stopped before;
	// stop reports whether it was.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// sleep waits for d or until ctx ends, and returns the cause of ctx. A value on wake, which
// may be nil, ends the sleep early without an error. It does not wait if d has passed already.
func sleep(ctx context.Context, c Clock, d time.Duration, wake <-chan struct{}) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	over := newSignal()
	defer c.AfterFunc(d, over.send)()
	select {
	case <-over:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// backoff grows pauses between attempts: exponential, capped, jittered, and never shorter
// than the pause a throttled service asked for.
type backoff struct {
	min, max time.Duration
	attempt  int
}

// next returns the pause before the next attempt after err.
func (b *backoff) next(err error) time.Duration {
	d := b.min << min(b.attempt, 20)
	if d <= 0 || d > b.max {
		d = b.max
	}
	b.attempt++
	d = jitter(d)
	if throttled, ok := errors.AsType[*ThrottledError](err); ok {
		d = max(d, throttled.RetryAfter)
	}
	return d
}

func (b *backoff) reset() { b.attempt = 0 }

// jitter spreads d over [0.8 d, 1.2 d), because hosts and ranges that started together
// would otherwise stay in step.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return d*4/5 + time.Duration(rand.Int64N(int64(d)*2/5+1))
}
