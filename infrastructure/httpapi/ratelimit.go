package httpapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory of the rate limiter. At the limit, full buckets are dropped;
// that loses nothing, because a new bucket is full too.
const maxBuckets = 4096

// rateLimiter has a token bucket per principal. It is safe for concurrent use.
type rateLimiter struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex // guards buckets
	buckets map[string]*rate.Limiter
}

func newRateLimiter(perSecond float64, burst int) *rateLimiter {
	return &rateLimiter{limit: rate.Limit(perSecond), burst: burst, buckets: map[string]*rate.Limiter{}}
}

// take spends one token of the principal. Without a token it spends none and returns the
// wait for the next one.
func (l *rateLimiter) take(principal string) time.Duration {
	now := time.Now()
	reservation := l.bucket(principal, now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

func (l *rateLimiter) bucket(principal string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets[principal]
	if !ok {
		if len(l.buckets) >= maxBuckets {
			l.forgetFull(now)
		}
		bucket = rate.NewLimiter(l.limit, l.burst)
		l.buckets[principal] = bucket
	}
	return bucket
}

func (l *rateLimiter) forgetFull(now time.Time) {
	for principal, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, principal)
		}
	}
}
