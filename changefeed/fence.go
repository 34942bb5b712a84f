package changefeed

import (
	"context"
	"errors"
	"sync"
	"time"
)

// fence is the trust window of one owned lease, drawn in doc.go. Each successful write
// moves it. When it passes, the context of every handler call of the lease ends. If only
// the wall clock is past it, as after a suspension, the lease is in doubt, because the
// monotonic clock stops during a suspension.
type fence struct {
	clocks clocks
	window time.Duration           // expiry - margin
	revoke context.CancelCauseFunc // ends the context

	mu    sync.Mutex
	until clockReading // guarded by mu
}

// clocks are a host's two clocks.
type clocks struct {
	clock Clock
	wall  func() time.Time
}

// clockReading is the time of both clocks at one moment.
type clockReading struct{ monotonic, wall time.Time }

func (w clocks) read() clockReading {
	return clockReading{monotonic: w.clock.Now(), wall: w.wall().Round(0)} // Round drops Go's monotonic reading
}

func (g clockReading) add(d time.Duration) clockReading {
	return clockReading{monotonic: g.monotonic.Add(d), wall: g.wall.Add(d)}
}

// newFence returns a context that ends with ErrFenced when the fence passes, or with the
// cause given to revoke. It does not end with parent, because a drain lets handlers finish.
// The first write began at began.
func newFence(parent context.Context, w clocks, began clockReading, window time.Duration) (context.Context, *fence) {
	ctx, revoke := context.WithCancelCause(context.WithoutCancel(parent))
	f := &fence{clocks: w, window: window, revoke: revoke, until: began.add(window)}
	f.watch()
	return ctx, f
}

// watch checks the clock until the fence has passed. It also ends after a revoke, because no
// write extends the fence any more.
func (f *fence) watch() {
	if !f.endIfPassed() {
		f.clocks.clock.AfterFunc(f.left(), f.watch)
	}
}

// extend moves the fence after a successful write that began at began. The fence never
// moves back.
func (f *fence) extend(began clockReading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if until := began.add(f.window); !until.monotonic.Before(f.until.monotonic) {
		f.until = until
	}
}

// left returns how long this host certainly owns the lease.
func (f *fence) left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.until.monotonic.Sub(f.clocks.clock.Now()))
}

// endIfPassed checks the clock, not the timer, because after a pause of the process the
// timer may not have run yet.
func (f *fence) endIfPassed() bool {
	passed := f.left() == 0
	if passed {
		f.revoke(ErrFenced)
	}
	return passed
}

func (f *fence) inDoubt() bool {
	f.mu.Lock()
	until := f.until.wall
	f.mu.Unlock()
	return !f.clocks.wall().Round(0).Before(until)
}

// errDoubt ends a handler call while the lease is in doubt.
var errDoubt = errors.New("lease in doubt: the wall clock ran ahead")

// fencedContext is a handler's context. It ends when the fence passes. Its Err also checks
// the clocks, so that a handler that wakes after a pause of the process sees the end before
// it sends anything.
type fencedContext struct {
	context.Context //nolint:containedctx // it is a context: an Err that also asks the fence
	fence           *fence
	end             context.CancelCauseFunc // of this call
}

func (c *fencedContext) Err() error {
	switch {
	case c.fence.endIfPassed():
		c.end(ErrFenced)
	case c.fence.inDoubt():
		c.end(errDoubt)
	}
	return c.Context.Err()
}
