package changefeed

import (
	"context"
	"errors"
	"testing"
	"time"
)

// manualClock moves and fires its timers only on demand. Its wall clock is ahead by wall.
type manualClock struct {
	now    time.Time
	ahead  time.Duration
	timers []func()
}

func (c *manualClock) watch() clocks {
	return clocks{clock: c, wall: func() time.Time { return c.now.Add(c.ahead) }}
}

// fence returns a fence that begins now and passes in 10 s.
func (c *manualClock) fence(parent context.Context) (context.Context, *fence) {
	return newFence(parent, c.watch(), c.watch().read(), 10*time.Second)
}

func (c *manualClock) Now() time.Time { return c.now }

func (c *manualClock) AfterFunc(_ time.Duration, f func()) func() bool {
	c.timers = append(c.timers, f)
	return func() bool { return true }
}

func (c *manualClock) fire() {
	due := c.timers
	c.timers = nil
	for _, f := range due {
		f()
	}
}

func TestFenceEndsTheContextUnlessMoved(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	ctx, f := c.fence(t.Context())
	first := c.watch().read()
	c.now = c.now.Add(9 * time.Second)
	f.extend(c.watch().read())
	f.extend(first) // never back
	c.now = c.now.Add(9 * time.Second)
	c.fire()
	if ctx.Err() != nil || f.endIfPassed() {
		t.Fatal("ended although it was moved")
	}
	c.now = c.now.Add(2 * time.Second)
	c.fire()
	if !errors.Is(context.Cause(ctx), ErrFenced) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

// After a pause of the process the clock has moved, but no timer has run yet.
func TestHandlersContextChecksTheClock(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	ctx, f := c.fence(t.Context())
	call, end := context.WithCancelCause(t.Context()) // of Processor.Own: it ends a moment after ctx
	handler := &fencedContext{Context: call, fence: f, end: end}
	if handler.Err() != nil {
		t.Fatal("ended too early")
	}
	c.now = c.now.Add(11 * time.Second)
	if handler.Err() == nil {
		t.Error("a handler that checks its context after a pause is not stopped")
	}
	if !errors.Is(context.Cause(handler), ErrFenced) || !errors.Is(context.Cause(ctx), ErrFenced) {
		t.Errorf("causes %v and %v", context.Cause(handler), context.Cause(ctx))
	}
}

// A suspension stops the monotonic clock but not the wall clock.
func TestFenceNoticesASuspension(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	ctx, f := c.fence(t.Context())
	call, end := context.WithCancelCause(ctx)
	handler := &fencedContext{Context: call, fence: f, end: end}
	c.ahead = 9 * time.Second
	if handler.Err() != nil || f.inDoubt() {
		t.Fatal("in doubt within the window")
	}
	f.extend(c.watch().read())
	c.ahead += 11 * time.Second
	if handler.Err() == nil || !errors.Is(context.Cause(handler), errDoubt) {
		t.Errorf("woken 11 s later on the wall clock, with a window of 10 s: %v", context.Cause(handler))
	}
	if ctx.Err() != nil {
		t.Error("the lease is revoked, although the host may still own it")
	}
	f.extend(c.watch().read())
	if f.inDoubt() {
		t.Error("in doubt after a renewal")
	}
}

// A wall clock that is set back neither ends the trust nor prolongs it.
func TestFenceSurvivesAWallClockSetBack(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	ctx, f := c.fence(t.Context())
	c.ahead = -time.Hour
	c.now = c.now.Add(9 * time.Second)
	if f.endIfPassed() || ctx.Err() != nil {
		t.Error("ended within the window")
	}
	c.now = c.now.Add(2 * time.Second)
	if !f.endIfPassed() {
		t.Error("prolonged by the wall clock")
	}
}

func TestFenceOutlivesItsParent(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	c := &manualClock{now: time.Unix(100, 0)}
	ctx, f := c.fence(parent)
	cancel()
	if ctx.Err() != nil {
		t.Error("a drain ended the handlers at once")
	}
	f.revoke(ErrLeaseLost)
	if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

func TestFencePassesAtTheEndOfItsWindow(t *testing.T) {
	for name, c := range map[string]struct {
		after         time.Duration // on both clocks
		passed, doubt bool
	}{
		"just before": {10*time.Second - 1, false, false},
		"at the end":  {10 * time.Second, true, true},
	} {
		clock := &manualClock{now: time.Unix(100, 0)}
		_, f := clock.fence(t.Context())
		clock.now = clock.now.Add(c.after)
		if doubt, passed := f.inDoubt(), f.endIfPassed(); doubt != c.doubt || passed != c.passed {
			t.Errorf("%s: in doubt %t, passed %t", name, doubt, passed)
		}
	}
}
