package changefeed

import (
	"context"
	"errors"
	"fmt"
)

// reconcile re-reads a record whose ETag was not the expected one. Whose lease it is
// shows in the owner that is stored and the epoch; what this host means to write next,
// such as that nobody owns it, does not matter. Another product's processor leaves the
// epoch as it is.
func (k *keeper) reconcile(ctx context.Context, mine Lease, version uint64) error {
	theirs, err := readLease(ctx, k.store, mine.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: record deleted", ErrLeaseLost)
	case errors.Is(err, errUnreadable):
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	case err != nil:
		return err
	case theirs.Epoch < k.epoch:
		return fmt.Errorf("read lease %s: stale", LeaseName(mine.ID))
	case theirs.Epoch == k.epoch && mine.Owner == "" && theirs.givenUpAs(&mine):
		k.mu.Lock()
		k.storedLocked(theirs.ETag, version) // the answer to the last write got lost
		k.mu.Unlock()
		return nil
	case theirs.Epoch > k.epoch, theirs.ownerKey() != k.self, theirs.State != LeaseLive:
		return &takenError{owner: theirs.Owner, epoch: theirs.Epoch, state: theirs.State}
	}
	k.adopt(theirs)
	return errRewritten
}

// takenError is ErrLeaseLost with what the record says now.
type takenError struct {
	owner string // empty: nobody
	epoch int64
	state LeaseState
}

func (e *takenError) Error() string {
	return fmt.Sprintf("%v: owner %q, state %q, epoch %d", ErrLeaseLost, e.owner, e.state, e.epoch)
}

func (e *takenError) Unwrap() error { return ErrLeaseLost }

// errRewritten: the ETag was taken over; write again at once.
var errRewritten = errors.New("record changed by somebody else, still owned")

// adopt takes over the parts of the record that others may write.
func (k *keeper) adopt(theirs Lease) {
	k.mu.Lock()
	k.lease.ETag = theirs.ETag
	k.lease.Request = theirs.Request
	k.lease.properties, k.lease.unknown = theirs.properties, theirs.unknown
	k.mu.Unlock()
	k.requested.send()
}
