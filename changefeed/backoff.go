package changefeed

import (
	"errors"
	"math/rand/v2"
	"time"
)

// backoff grows pauses between attempts: exponential, capped, jittered, and
// never shorter than what a throttled service asked for.
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
	var throttled *ThrottledError
	if errors.As(err, &throttled) {
		d = max(d, throttled.RetryAfter)
	}
	return d
}

func (b *backoff) reset() { b.attempt = 0 }

// jitter spreads d over [0.8 d, 1.2 d), so that hosts and ranges that started
// together do not stay in step.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return d*4/5 + time.Duration(rand.Int64N(int64(d)*2/5+1))
}
