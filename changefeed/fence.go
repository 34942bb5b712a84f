package changefeed

import (
	"context"
	"errors"
	"sync"
	"time"
)

// fence is the trust window of one owned lease: until it passes, no other host
// that keeps the rules can have taken the lease. Each successful write moves it
// to the start of that write + expiry - margin. When it passes, the context of
// every handler call of the lease ends.
//
// The monotonic clock of a machine that was suspended did not run meanwhile, but
// its wall clock is right again on waking. So the wall clock has a say: if by it
// the window is over, the lease is in doubt. Handlers are ended, and nothing is
// delivered before a renewal has shown whose the lease is. That is all a wall
// clock set forward costs; one set back costs nothing.
type fence struct {
	watch  watch
	window time.Duration // expiry - margin
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	until glance      // guarded by mu
	stop  func() bool // guarded by mu; the timer's, nil once revoked
}

// watch is a host's two clocks.
type watch struct {
	clock Clock
	wall  func() time.Time
}

// glance is what both showed at one moment.
type glance struct{ own, wall time.Time }

func (w watch) glance() glance {
	return glance{own: w.clock.Now(), wall: w.wall().Round(0)} // Round drops Go's monotonic reading
}

func (g glance) add(d time.Duration) glance { return glance{own: g.own.Add(d), wall: g.wall.Add(d)} }

// newFence returns a context that ends with ErrFenced when the fence passes, or
// with the cause given to revoke. It does not end with parent: a drain lets
// handlers finish. The first write began at began.
func newFence(parent context.Context, w watch, began glance, window time.Duration) (context.Context, *fence) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	f := &fence{watch: w, window: window, cancel: cancel, until: began.add(window)}
	f.mu.Lock()
	f.stop = w.clock.AfterFunc(f.until.own.Sub(w.clock.Now()), f.ring)
	f.mu.Unlock()
	return ctx, f
}

// ring runs when the timer does: the fence has passed unless it was moved.
func (f *fence) ring() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		return
	}
	if left := f.until.own.Sub(f.watch.clock.Now()); left > 0 {
		f.stop = f.watch.clock.AfterFunc(left, f.ring)
		return
	}
	f.stop = nil
	f.cancel(ErrFenced)
}

// extend moves the fence forward, never back: a write that began then succeeded.
func (f *fence) extend(began glance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if until := began.add(f.window); !until.own.Before(f.until.own) {
		f.until = until
	}
}

// revoke ends the context now.
func (f *fence) revoke(cause error) {
	f.mu.Lock()
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	f.mu.Unlock()
	f.cancel(cause)
}

// trusted reports until when the lease is certainly this host's, on its own clock.
func (f *fence) trusted() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until.own
}

// passed asks the clock, not the timer: after a pause of the process the timer
// may not have run yet.
func (f *fence) passed() bool {
	if !f.watch.clock.Now().Before(f.trusted()) {
		f.revoke(ErrFenced)
		return true
	}
	return false
}

// doubted reports whether the wall clock is past the window.
func (f *fence) doubted() bool {
	f.mu.Lock()
	until := f.until.wall
	f.mu.Unlock()
	return !f.watch.wall().Round(0).Before(until)
}

// errDoubt ends a handler call while the lease is in doubt.
var errDoubt = errors.New("lease in doubt: the wall clock ran ahead")

// fencedContext is what a handler gets. It ends when the fence passes, and its
// Err asks the clocks as well, so that a handler woken after a pause of the
// process sees the end before it sends anything.
type fencedContext struct {
	context.Context //nolint:containedctx // it is a context: an Err that also asks the fence
	fence           *fence
	end             context.CancelCauseFunc // of this call
}

func (c *fencedContext) Err() error {
	switch {
	case c.fence.passed():
		<-c.Done()
	case c.fence.doubted():
		c.end(errDoubt)
	}
	return c.Context.Err()
}
