package changefeed

import (
	"context"
	"errors"
	"fmt"
)

// reconcile re-reads a record whose ETag was not the expected one. The stored owner and
// epoch show whose lease it is; the content of this host's next write, such as a release,
// does not matter. Another product's processor leaves the epoch unchanged.
func (k *keeper) reconcile(ctx context.Context, mine Lease, version uint64) error {
	theirs, err := readLease(ctx, k.store, mine.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: record deleted", ErrLeaseLost)
	case errors.Is(err, errUnreadable):
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	case err != nil:
		return err
	case theirs.loaded != mine.loaded: // what this host has done since may be lost: drop it
		return fmt.Errorf("%w: %w", ErrLeaseLost, errReload)
	case theirs.Epoch < k.epoch: // retried, because the store may return an old version
		return fmt.Errorf("read lease %s: stale", LeaseName(mine.ID))
	case theirs.Epoch == k.epoch && mine.Owner == "" && theirs.releasedAs(&mine):
		k.mu.Lock()
		k.storedLocked(theirs.ETag, version) // the reply to the last write was lost
		k.mu.Unlock()
		return nil
	case theirs.Epoch > k.epoch, theirs.ownerKey() != k.self, theirs.State != LeaseLive:
		return &takenError{owner: theirs.Owner, epoch: theirs.Epoch, state: theirs.State}
	}
	k.adopt(theirs)
	if k.conflicts++; k.conflicts > 1 {
		return fmt.Errorf("write lease %s: conflict %d in a row: another writer is faster, or the store returns old versions", LeaseName(mine.ID), k.conflicts)
	}
	return errRewritten
}

// takenError is ErrLeaseLost with the current content of the record.
type takenError struct {
	owner string // empty if unowned
	epoch int64
	state LeaseState
}

func (e *takenError) Error() string {
	return fmt.Sprintf("%v: owner %q, state %q, epoch %d", ErrLeaseLost, e.owner, e.state, e.epoch)
}

func (e *takenError) Unwrap() error { return ErrLeaseLost }

// errRewritten means that the new ETag was adopted and the write must be repeated at once. Only
// the first conflict is: the next writes wait, because a store may return old versions for long.
var errRewritten = errors.New("record changed by another writer, lease still owned")

// adopt copies the parts of the record that others may write. The worker gets the request once the next write has
// proved that the record is the latest one. Otherwise a request that was carried out would be carried out again
// because a delayed replica still has it.
func (k *keeper) adopt(theirs Lease) {
	k.mu.Lock()
	k.lease.ETag = theirs.ETag
	k.unproved = &theirs.Request
	k.lease.properties, k.lease.unknown = theirs.properties, theirs.unknown
	k.mu.Unlock()
}
