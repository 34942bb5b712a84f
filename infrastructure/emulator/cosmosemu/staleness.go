package cosmosemu

import (
	"math/rand/v2"
	"sync"
	"time"
)

// lags draws the staleness of reads that carry no session token.
type lags struct {
	mu     sync.Mutex // guards random
	random *rand.Rand
}

// lag returns a lag up to limit. It is zero for half of the reads.
func (l *lags) lag(limit time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Duration(l.random.Int64N(2*int64(limit)+1))-limit)
}
