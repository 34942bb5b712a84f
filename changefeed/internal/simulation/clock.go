package simulation

import (
	"sync"
	"time"
)

// hostClock is one host's monotonic clock: it runs at its own rate and stops
// while the host is suspended.
type hostClock struct {
	rate float64 // own seconds per second

	mu      sync.Mutex // guards the fields below
	began   time.Time
	own     time.Duration // own time when began was set
	stopped bool
	timers  map[*hostTimer]bool
}

type hostTimer struct {
	due  time.Duration // in own time
	f    func()
	real *time.Timer // nil while the clock is stopped
}

func newHostClock(rate float64) *hostClock {
	return &hostClock{rate: rate, began: time.Now(), timers: map[*hostTimer]bool{}}
}

// origin makes the clocks of different hosts incomparable.
var origin = time.Unix(0, 0)

func (c *hostClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return origin.Add(c.ownLocked())
}

func (c *hostClock) ownLocked() time.Duration {
	if c.stopped {
		return c.own
	}
	return c.own + time.Duration(float64(time.Since(c.began))*c.rate)
}

func (c *hostClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &hostTimer{due: c.ownLocked() + d, f: f}
	c.timers[t] = true
	if !c.stopped {
		c.armLocked(t)
	}
	return func() bool { return c.cancel(t) }
}

func (c *hostClock) armLocked(t *hostTimer) {
	left := time.Duration(float64(t.due-c.ownLocked()) / c.rate)
	t.real = time.AfterFunc(left+1, func() {
		if c.cancel(t) {
			t.f()
		}
	})
}

// cancel removes a timer and reports whether it was still set.
func (c *hostClock) cancel(t *hostTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.timers[t]
	delete(c.timers, t)
	if t.real != nil {
		t.real.Stop()
	}
	return set
}

func (c *hostClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.own = c.ownLocked()
	c.stopped = true
	for t := range c.timers {
		if t.real != nil {
			t.real.Stop()
			t.real = nil
		}
	}
}

// resume restarts the clock at the time it stopped.
func (c *hostClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		return
	}
	c.stopped = false
	c.began = time.Now()
	for t := range c.timers {
		c.armLocked(t)
	}
}
