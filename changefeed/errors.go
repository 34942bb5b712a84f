package changefeed

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors a LeaseStore returns, wrapped or bare.
var (
	// ErrExists: Create found a record with that id.
	ErrExists = errors.New("record exists")
	// ErrNotFound: no record with that id.
	ErrNotFound = errors.New("record not found")
	// ErrETagMismatch: the record is not the one the caller last saw.
	ErrETagMismatch = errors.New("etag does not match")
)

// Errors of the processor.
var (
	// ErrLeaseLost is the cause of a handler's context that ended because another owner has
	// the lease now. The results of such a call do not count.
	ErrLeaseLost = errors.New("lease lost to another owner")
	// ErrFenced is the cause of a handler's context that ended because the lease could not
	// be renewed inside the trust window. Another owner may take over.
	ErrFenced = errors.New("trust window closed without a renewal")
	// ErrDraining is the cause of a handler's context that ended because it was still
	// running at the drain deadline.
	ErrDraining = errors.New("drain deadline passed")
	// ErrHandlerTimeout is the cause of a handler's context that ended because the call
	// took longer than Options.HandlerTimeout.
	ErrHandlerTimeout = errors.New("handler timed out")
	// ErrRunning: Run was called on a processor that is running.
	ErrRunning = errors.New("processor is already running")
	// ErrNotOwned: this host does not process the range now.
	ErrNotOwned = errors.New("range not owned by this host")
	// ErrRecreated: the container is another one than that of the leases, because it was
	// deleted and created again under its name. A running processor notices it within about
	// two Expiry and continues with new leases from the beginning of the new container.
	ErrRecreated = errors.New("the container was deleted and created again")
	// ErrPermanent marks an error that no retry can fix, such as a missing container. Run
	// returns it during initialization.
	ErrPermanent = errors.New("permanent")
)

// SplitError is returned by Feed.Read when several physical ranges serve the range now. The
// reply that revealed it must not be used.
type SplitError struct {
	Range FeedRange
	// Children tile Range. They may be empty if the feed does not know them; the processor
	// then calls Feed.Ranges.
	Children []FeedRange
}

func (e *SplitError) Error() string {
	return fmt.Sprintf("feed range %s is now served by %d ranges", e.Range, len(e.Children))
}

// AheadError reports that a position is ahead of the end of its feed. While replicas are only
// delayed this passes in moments. Otherwise the container has lost changes that were delivered:
// it was restored from a backup, or its region failed over. Its next changes would then reuse
// the numbers of the lost ones, and a reader at the position would skip them.
type AheadError struct {
	Position int64 // the highest LSN that was read
	End      int64 // the last LSN of the feed
	// Lost means that the changes are lost: the physical range failed over in between, or the
	// feed cannot be delayed. The range is not read again before an operator has decided,
	// because new changes would soon reach the position and hide the loss.
	Lost bool
	// Foreign means that another server gave the position, and its numbers mean nothing here.
	Foreign bool
	Term    string // the Page.Term of the reply, if a feed returns the error
}

func (e *AheadError) Error() string {
	advice := "If the container was restored or failed over, restart its leases from the beginning (Operator.Restart); otherwise wait"
	switch {
	case e.Foreign:
		return "the checkpoint was written on another server. If the database was restored or copied, restart its leases from the beginning (Operator.Restart). " +
			"If only the identity of the server has changed, as in an upgrade, retry them (Operator.Retry)"
	case e.Lost:
		advice = "It has failed over meanwhile, or was restored: restart its leases from the beginning (Operator.Restart), or retry them if nothing was lost (Operator.Retry)"
	}
	return fmt.Sprintf("the checkpoint is ahead of the feed: LSN %d was read, and the feed ended with %d. %s", e.Position, e.End, advice)
}

// ThrottledError says when to retry. A Feed and a LeaseStore return it for a rate limit.
type ThrottledError struct {
	RetryAfter time.Duration // 0: the caller's own backoff
	Err        error
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("throttled, retry after %s: %v", e.RetryAfter, e.Err)
}

func (e *ThrottledError) Unwrap() error { return e.Err }

// RefusedError lists leases this processor cannot continue. Nothing was changed.
type RefusedError struct {
	Leases []RefusedLease
}

// RefusedLease is one lease and the reason for its refusal.
type RefusedLease struct {
	ID     string
	Reason string
}

func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Leases))
	for _, l := range e.Leases {
		lines = append(lines, l.ID+": "+l.Reason)
	}
	return "leases that cannot be continued: " + strings.Join(lines, "; ")
}

// PanicError is a handler's panic, turned into an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }
