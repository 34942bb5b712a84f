package command

import (
	"context"
	"math/rand/v2"
	"time"

	"feedbox/domain/fault"
)

// CodeContended is the code of Unavailable for a command without a precondition that lost
// every race against concurrent writers of the aggregate. Nothing was changed.
const CodeContended = "contended"

// A command without a precondition that loses a race starts again from the read, after a
// random wait of up to a bound that doubles. The waits are random because otherwise writers
// that start at the same time would collide again. With these numbers fifty concurrent
// writers of one aggregate all succeed. The waits add up to 7.4 s at most, and to half of
// that on average.
const (
	updateAttempts = 24
	firstWait      = 5 * time.Millisecond // the bound of the wait before the second attempt
	longestWait    = 400 * time.Millisecond
)

// backOff waits after a lost attempt, counted from 1. It reports whether to try again.
func backOff(ctx context.Context, attempt int) bool {
	if attempt >= updateAttempts {
		return false
	}
	bound := longestWait
	if doublings := attempt - 1; doublings < 10 {
		bound = min(bound, firstWait<<doublings)
	}
	timer := time.NewTimer(rand.N(bound))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errContended returns the fault of a command that has used all its attempts. lost is the
// error of the last one.
func errContended(noun string, lost error) error {
	contended := fault.Wrap(fault.Unavailable, CodeContended, "the "+noun+" is being changed by many at the same time; nothing was done, try again", lost)
	contended.RetryAfter = time.Second
	return contended
}
