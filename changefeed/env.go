package changefeed

import (
	"errors"
	"sync"
	"time"
)

// env holds the dependencies of a processor and the identity of its current run. Every room
// of the package has it. It does not change once the container is identified.
type env struct {
	feed    Feed       // its requests have deadlines
	store   LeaseStore // its requests, too
	handler Handler
	opts    Options // resolved
	clock   Clock
	obs     *Observer

	self        hostKey
	incarnation string
	sibling     int       // its place among Options.Siblings
	source      Source    // zero until the container is identified
	ids         recordIDs // of its records
	relist      signal    // list the leases now: something has changed
	turns       *turns    // of its reads
}

// reportError notifies the observer of a failed operation that is retried.
func (e *env) reportError(lease, op string, err error) {
	if err != nil {
		notify(e.obs.LeaseError, LeaseError{Lease: lease, Op: op, Err: err})
	}
}

// unlessLostRace returns err of a conditional write, or nil if another host was faster: the
// record is gone or has changed.
func unlessLostRace(err error) error {
	if errors.Is(err, ErrETagMismatch) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// signal wakes one waiting goroutine. Sending does not block.
type signal chan struct{} // capacity 1

func newSignal() signal { return make(signal, 1) }

func (h signal) send() {
	select {
	case h <- struct{}{}:
	default:
	}
}

// turns divides Options.PollRate among all ranges of a host, first come, first served.
type turns struct {
	mu   sync.Mutex
	next time.Time // of the last range that asked
}

// wait returns the pause of a range that would pause for want. mine is the turn of the range: if Wake has ended a
// pause before it, it is still to come.
func (t *turns) wait(now time.Time, want time.Duration, o *Options, mine *time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !mine.After(now) {
		if t.next.Before(now) {
			t.next = now
		}
		t.next = t.next.Add(time.Second / time.Duration(o.PollRate))
		*mine = t.next
	}
	return max(want, min(mine.Sub(now), o.PollMax))
}
