package cosmosemu

import (
	"math/rand/v2"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// lags draws how stale the reads without a session token are.
type lags struct {
	mu     sync.Mutex // guards random
	random *rand.Rand
}

// lag returns a lag up to limit; for half of the reads it is zero.
func (l *lags) lag(limit time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Duration(l.random.Int64N(2*int64(limit)+1))-limit)
}

// moment is the state a read is served from, nil for the present. The caller
// releases it.
func (x *request) moment() *store.Moment {
	limit := x.srv.options.StaleReads
	if limit <= 0 || first(x.header, headerSessionToken) != "" {
		return nil
	}
	return x.srv.store.Past(x.srv.lags.lag(limit))
}
