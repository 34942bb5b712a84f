package busemu

import (
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// managementCredits is the cost of a request to $management or to the admin API. A sent or
// delivered message costs one.
const managementCredits = 10

// credits limits the operations of a namespace per second.
type credits struct {
	limit int // 0: no limit
	mu    sync.Mutex
	until time.Time // end of the current second
	used  int
}

// take pays for an operation, or returns the time to wait. An operation that costs more than
// the rest succeeds if any credit is left, because otherwise it might never.
func (c *credits) take(n int) (wait time.Duration, ok bool) {
	if c.limit == 0 {
		return 0, true
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now.Before(c.until) {
		c.until, c.used = now.Add(time.Second), max(0, c.used-c.limit)
	}
	if c.used >= c.limit {
		return c.until.Sub(now), false
	}
	c.used += n
	return 0, true
}

func throttled() *broker.Error {
	return &broker.Error{Condition: broker.ServerBusy, Description: "The request was terminated because the namespace is being throttled. Error code: 50009. Please wait 2 seconds and try again."}
}
