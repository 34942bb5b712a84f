package changefeed

import (
	"context"
	"sync"
	"time"
)

// fence is the trust window of one owned lease: until it passes, no other host
// that keeps the rules can have taken the lease. Each successful write moves it
// to the start of that write + expiry - margin. When it passes, the context of
// every handler call of the lease ends.
type fence struct {
	clock  Clock
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	until time.Time   // guarded by mu
	stop  func() bool // guarded by mu; the timer's, nil once revoked
}

// newFence returns a context that ends with ErrFenced when the fence passes, or
// with the cause given to revoke. It does not end with parent: a drain lets
// handlers finish.
func newFence(parent context.Context, c Clock, until time.Time) (context.Context, *fence) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	f := &fence{clock: c, cancel: cancel, until: until}
	f.mu.Lock()
	f.stop = c.AfterFunc(until.Sub(c.Now()), f.ring)
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
	if left := f.until.Sub(f.clock.Now()); left > 0 {
		f.stop = f.clock.AfterFunc(left, f.ring)
		return
	}
	f.stop = nil
	f.cancel(ErrFenced)
}

// extend moves the fence forward, never back.
func (f *fence) extend(until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if until.After(f.until) {
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

// trusted reports until when the lease is certainly this host's.
func (f *fence) trusted() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until
}

// passed asks the clock, not the timer: after a pause of the process the timer
// may not have run yet.
func (f *fence) passed() bool {
	if !f.clock.Now().Before(f.trusted()) {
		f.revoke(ErrFenced)
		return true
	}
	return false
}

// fencedContext is what a handler gets. It ends when the fence passes, and its
// Err asks the clock as well, so that a handler woken after a pause of the
// process sees the end before it sends anything.
type fencedContext struct {
	context.Context //nolint:containedctx // it is a context: an Err that also asks the fence
	fence           *fence
}

func (c *fencedContext) Err() error {
	if c.fence.passed() {
		<-c.Done()
	}
	return c.Context.Err()
}
