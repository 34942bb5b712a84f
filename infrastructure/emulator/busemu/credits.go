package busemu

import (
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// managementCredits is the cost of a request to $management or to the admin API. A sent or
// delivered message costs one.
const managementCredits = 10

// unitBytes is the throughput of a messaging unit per second, each way. Source: Microsoft Learn,
// "Best practices for performance improvements using Service Bus", some 4 MB.
const unitBytes = 4_000_000

// credits limits the operations of a namespace per second, or the bytes of one way.
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
		ended := min(int(now.Sub(c.until)/time.Second), c.used/c.limit) + 1 // seconds, no more than the debt needs
		c.until, c.used = now.Add(time.Second), max(0, c.used-c.limit*ended)
	}
	if c.used >= c.limit {
		return c.until.Sub(now), false
	}
	c.used += n
	return 0, true
}

// pay pays for messages in one way, or returns the time to wait. A namespace has credits (Standard)
// or messaging units (Premium), not both.
func (n *namespace) pay(way *credits, messages, bytes int) (wait time.Duration, ok bool) {
	if wait, ok = n.credits.take(messages); ok {
		wait, ok = way.take(bytes)
	}
	return wait, ok
}

func throttled() *broker.Error {
	return &broker.Error{Condition: broker.ServerBusy, Description: "The request was terminated because the namespace is being throttled. Error code: 50009. Please wait 2 seconds and try again."}
}
