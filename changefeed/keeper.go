package changefeed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// keeper is one lease this host holds. Everything that changes the record goes
// through it, so that there is one writer, one ETag and no self-made conflict:
// renewals, checkpoints, attempts and health are the same write.
//
// keep runs on a goroutine of its own; the other methods are safe for
// concurrent use.
type keeper struct {
	*env
	self      hostKey // who holds it, whatever the record below says by now
	epoch     int64
	fence     *fence
	kick      signal // the record changed, or must be written now
	requested signal // somebody else changed what is asked of the owner

	mu      sync.Mutex    // guards what follows, never held across I/O
	lease   Lease         // as it should be stored; ETag is that of the last write
	version uint64        // counts changes to lease
	stored  uint64        // version of the last successful write
	wrote   time.Time     // start of the last successful write
	urgent  uint64        // versions up to this one must be written at once
	renewAt time.Time     // when to write although nothing changed
	soon    uint64        // versions up to this one wait for CheckpointEvery only
	items   int           // items handled since the last write
	synced  chan struct{} // closed and replaced by each successful write
	ended   error         // why ownership ended, once it did
}

// newKeeper wraps a lease whose acquisition began at began. requested is told when the
// request in the record was changed by somebody else.
func newKeeper(e *env, lease Lease, f *fence, began time.Time, requested signal) *keeper {
	return &keeper{
		env: e, self: lease.ownerKey(), epoch: lease.Epoch, fence: f, lease: lease, wrote: began, renewAt: began.Add(jitter(e.opts.Renew)),
		kick: newSignal(), requested: requested, synced: make(chan struct{}),
	}
}

// snapshot is the record as it should be stored.
func (k *keeper) snapshot() Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease
}

// run renews the lease and writes what changes until ctx ends, or until ownership does:
// ErrLeaseLost or ErrFenced. A write that is under way when ctx ends is waited for: it may
// have taken effect, and the next one needs its ETag.
func (k *keeper) run(ctx context.Context) {
	retry := backoff{min: k.opts.Renew / 16, max: k.opts.Renew / 2}
	for ctx.Err() == nil {
		if due := k.due(); due > 0 {
			_ = sleep(ctx, k.clock, due, k.kick) // the loop's condition asks ctx
			continue
		}
		err := k.write(context.WithoutCancel(ctx))
		switch {
		case err == nil, errors.Is(err, errRewritten):
			retry.reset()
			continue // what was due and is not stored still is
		case errors.Is(err, ErrLeaseLost) || k.fence.endIfPassed():
			if !errors.Is(err, ErrLeaseLost) {
				err = fmt.Errorf("%w: %w", ErrFenced, err)
			}
			k.end(err)
			return
		}
		k.reportError(k.lease.ID, "renew", err)
		_ = sleep(ctx, k.clock, min(retry.next(err), k.fence.left()), nil)
	}
}

// due is how long until the next write: at once if somebody waits for it, soon
// if a checkpoint does, else when the renewal is.
func (k *keeper) due() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.urgent > k.stored || k.items >= checkpointItems {
		return 0
	}
	now := k.clock.Now()
	left := k.renewAt.Sub(now)
	if k.soon > k.stored {
		left = min(left, k.wrote.Add(k.opts.CheckpointEvery).Sub(now))
	}
	return max(0, left)
}

// write stores the record once. After a conflict it looks whether the lease is
// still this host's: an operator or an answer that got lost may have changed the
// ETag.
func (k *keeper) write(ctx context.Context) error {
	began := k.fence.clocks.read()
	k.mu.Lock()
	lease, version, items := k.lease, k.version, k.items
	k.mu.Unlock()
	lease.Timestamp = k.opts.Now()

	ctx, cancel := context.WithTimeout(ctx, min(k.fence.left(), k.opts.Expiry/4))
	defer cancel()
	etag, err := k.store.Replace(ctx, lease.encode())
	switch {
	case errors.Is(err, ErrETagMismatch):
		return k.reconcile(ctx, lease, version)
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: record deleted", ErrLeaseLost)
	case err != nil:
		return fmt.Errorf("write lease %s: %w", LeaseName(lease.ID), err)
	}
	k.fence.extend(began)
	k.mu.Lock()
	k.wrote = began.monotonic
	k.renewAt = began.monotonic.Add(jitter(k.opts.Renew))
	k.items -= items
	k.storedLocked(etag, version)
	k.mu.Unlock()
	tell(k.obs.CheckpointWritten, CheckpointWritten{
		LeaseRef: lease.ref(), Continuation: lease.Continuation, LSN: lease.LSN, Took: k.clock.Now().Sub(began.monotonic),
	})
	return nil
}

// storedLocked notes that the record is stored up to a version. Called with mu.
func (k *keeper) storedLocked(etag string, version uint64) {
	k.lease.ETag, k.stored = etag, version
	k.wakeLocked()
}

// wakeLocked has those that wait for a write look again. Called with mu.
func (k *keeper) wakeLocked() {
	close(k.synced)
	k.synced = make(chan struct{})
}

// end makes every waiter return the reason and ends the handlers' context.
func (k *keeper) end(why error) {
	k.mu.Lock()
	k.ended = why
	k.wakeLocked()
	k.mu.Unlock()
	k.fence.revoke(why)
}

// finish writes the record a last time, after keep has ended: edit says what
// becomes of it. It tries until it succeeds, the lease is lost or the fence passes, whether
// ctx ends or not.
func (k *keeper) finish(ctx context.Context, edit func(*Lease)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.fence.left())
	defer cancel()
	k.change(func(l *Lease) urgency { edit(l); return later })
	retry := backoff{min: k.opts.Renew / 64, max: k.opts.Renew / 4}
	for {
		err := k.write(ctx)
		switch {
		case err == nil, errors.Is(err, ErrLeaseLost):
			return err
		case errors.Is(err, errRewritten):
			continue
		}
		if sleep(ctx, k.clock, retry.next(err), nil) != nil {
			return err
		}
	}
}
