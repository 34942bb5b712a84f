package command

import (
	"context"
	"math/rand/v2"
	"time"

	"feedbox/domain/fault"
)

// CodeContended is the code of Unavailable: so many others changed the aggregate at the
// same time that this change, which named no state it goes with, was never the first.
// Nothing was done.
const CodeContended = "contended"

// How a command without a precondition goes on when it loses the race against other
// writers: from the read, after a random wait of up to a bound that doubles. Writers
// that all begin at the same time spread, and fifty of one aggregate all get through.
// The waits are 7.4 s together at most, half of that on average.
const (
	updateAttempts = 24
	firstWait      = 5 * time.Millisecond // the bound before the second attempt
	longestWait    = 400 * time.Millisecond
)

// standBack waits after a lost attempt, counted from 1. It reports false when there
// shall be no other one.
func standBack(ctx context.Context, attempt int) bool {
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

// errContended says that a command gave up, with its last lost race as the cause.
func errContended(noun string, lost error) error {
	contended := fault.Wrap(fault.Unavailable, CodeContended, "the "+noun+" is being changed by many at the same time; nothing was done, try again", lost)
	contended.RetryAfter = time.Second
	return contended
}
