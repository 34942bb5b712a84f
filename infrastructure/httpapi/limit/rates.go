package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets is the number of buckets at which the full ones are dropped. That loses nothing, because
// a new bucket is full too. If many are not full, the next look is at twice their number, because
// looking at all of them for each new key would be an attack of its own.
const maxBuckets = 4096

// Rates has a token bucket per key: a caller, or an address. It is safe for concurrent use.
type Rates struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex // guards the fields below
	buckets map[string]*rate.Limiter
	most    int // number of buckets at which full ones are dropped
}

// NewRates returns buckets of burst tokens that refill at a rate.
func NewRates(perSecond float64, burst int) *Rates {
	return &Rates{limit: rate.Limit(perSecond), burst: burst, buckets: map[string]*rate.Limiter{}, most: maxBuckets}
}

// Take spends one token of key. Without a token it spends none and returns the
// wait for the next one.
func (l *Rates) Take(key string) time.Duration {
	now := time.Now()
	bucket := l.bucket(key, now)
	// A reservation that is cancelled while another one is made would not get its token back.
	if bucket.AllowN(now, 1) {
		return 0
	}
	missing := 1 - bucket.TokensAt(now)
	return max(1, time.Duration(missing/float64(l.limit)*float64(time.Second)))
}

func (l *Rates) bucket(key string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets[key]
	if !ok {
		if len(l.buckets) >= l.most {
			l.forgetFull(now)
			l.most = max(maxBuckets, 2*len(l.buckets))
		}
		bucket = rate.NewLimiter(l.limit, l.burst)
		l.buckets[key] = bucket
	}
	return bucket
}

func (l *Rates) forgetFull(now time.Time) {
	for key, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, key)
		}
	}
}

// maxLines bounds the log lines of a Sampler in a second.
const maxLines = 10

// Sampler bounds log lines that clients can cause without a credential, because the log of an
// attack could otherwise fill a disk. The zero value is ready. It is safe for concurrent use.
type Sampler struct {
	mu      sync.Mutex // guards the fields below
	began   time.Time  // of the current second
	lines   int        // in it
	leftOut int64      // since the last line
}

// Line reports whether to write a line now, and how many were left out before it.
func (s *Sampler) Line() (ok bool, leftOut int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.began) >= time.Second {
		s.began, s.lines = now, 0
	}
	if s.lines >= maxLines {
		s.leftOut++
		return false, 0
	}
	s.lines++
	leftOut, s.leftOut = s.leftOut, 0
	return true, leftOut
}

// Places bounds work in progress. Refusing the rest early keeps the admitted work fast. A caller
// may hold as many places as are free: one caller alone half of them, two a third each. So there
// is always a place for a caller that has none, without a part reserved for it. It is safe for
// concurrent use.
type Places struct {
	limit int // unlimited if not positive

	mu   sync.Mutex // guards the fields below
	held int
	by   map[string]int // by caller
}

// NewPlaces returns limit places; unlimited if it is not positive.
func NewPlaces(limit int) *Places { return &Places{limit: limit, by: map[string]int{}} }

// Enter takes a place for a caller. The empty caller has no share of its own, and may take all.
// If it is refused, free reports whether others would get a place.
func (p *Places) Enter(caller string) (entered, free bool) {
	if p.limit <= 0 {
		return true, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.limit - p.held
	if left <= 0 || caller != "" && p.by[caller] >= left {
		return false, left > 0
	}
	p.held++
	if caller != "" {
		p.by[caller]++
	}
	return true, true
}

// Leave returns a place that Enter has taken.
func (p *Places) Leave(caller string) {
	if p.limit <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
	if caller == "" {
		return
	}
	if p.by[caller]--; p.by[caller] == 0 {
		delete(p.by, caller)
	}
}
