package changefeed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// keeper writes the record of one lease this host owns. Every change of the record goes
// through it, because a single writer with a single ETag cannot conflict with itself:
// renewals, checkpoints, attempts and health are the same write.
//
// run has a goroutine of its own. The other methods are safe for concurrent use.
type keeper struct {
	*env
	self      hostKey // the owner, even if the record below has another one by now
	epoch     int64
	fence     *fence
	kick      signal // the record changed, or must be written now
	requested signal // another writer changed the request to the owner

	conflicts int // in a row; only write uses it, and writes do not overlap

	mu    sync.Mutex // guards the fields below; never held across I/O
	lease Lease      // the desired record; ETag is that of the last write
	// unproved is the request of a record that was read after a conflict, until a write in its place succeeds; else nil.
	unproved *Request
	version  uint64        // counts changes to lease
	stored   uint64        // version of the last successful write
	wrote    time.Time     // start of the last successful write
	urgent   uint64        // versions up to this one must be written at once
	renewAt  time.Time     // time of the next write without a change
	soon     uint64        // versions up to this one wait for CheckpointEvery only
	items    int           // items handled since the last write
	synced   chan struct{} // closed and replaced by each successful write
	ended    error         // why ownership ended, once it did
	session  session       // it knows what is done ahead of the checkpoint; nil between sessions
}

// session is a running session of delivery.
type session interface {
	// ahead returns what is done ahead of the checkpoint now; stored is the LSN that a
	// record may have already. It must not be called with the keeper's mutex.
	ahead(stored int64) Ahead
}

// follow keeps what the session before has done ahead of the checkpoint in the record, and
// takes it from s from now on.
func (k *keeper) follow(s session) {
	k.collect()
	k.mu.Lock()
	k.session = s
	k.mu.Unlock()
}

// collect takes what the session has done ahead of the checkpoint into the record. It is
// called before each write, because it costs more than a change of the checkpoint. The
// checkpoint may move meanwhile: what was done before is still done then.
func (k *keeper) collect() {
	k.mu.Lock()
	s, stored := k.session, k.lease.Ahead.LSN
	k.mu.Unlock()
	if s == nil {
		return
	}
	ahead := s.ahead(stored)
	k.mu.Lock()
	if k.session == s { // otherwise the position may have been moved
		k.lease.Ahead = ahead
	}
	k.mu.Unlock()
}

// newKeeper returns the keeper of a lease whose acquisition began at began. requested is
// signaled when another writer changed the request in the record.
func newKeeper(e *env, lease Lease, f *fence, began time.Time, requested signal) *keeper {
	return &keeper{
		env: e, self: lease.ownerKey(), epoch: lease.Epoch, fence: f, lease: lease, wrote: began, renewAt: began.Add(jitter(e.opts.Renew)),
		kick: newSignal(), requested: requested, synced: make(chan struct{}),
	}
}

// snapshot returns the desired record.
func (k *keeper) snapshot() Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease
}

// run renews the lease and writes its changes until ctx ends, or until the ownership ends
// with ErrLeaseLost or ErrFenced. It waits for a write in progress when ctx ends, because
// that write may take effect and the next one needs its ETag.
func (k *keeper) run(ctx context.Context) {
	retry := backoff{min: k.opts.Renew / 16, max: k.opts.Renew / 2}
	for ctx.Err() == nil {
		if due := k.due(); due > 0 {
			_ = sleep(ctx, k.clock, due, k.kick) // the loop's condition checks ctx
			continue
		}
		err := k.write(context.WithoutCancel(ctx))
		switch {
		case err == nil, errors.Is(err, errRewritten):
			retry.reset()
			continue // a change that is not stored is still due
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

// due returns the time until the next write: none if a caller waits for it, at most
// CheckpointEvery for a checkpoint, else the time until the renewal.
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

// write stores the record once. After a conflict it checks whether this host still owns the
// lease, because an operator or a lost reply may have changed the ETag.
func (k *keeper) write(ctx context.Context) error {
	began := k.fence.clocks.read()
	k.collect()
	k.mu.Lock()
	lease, version, items, unproved := k.lease, k.version, k.items, k.unproved
	k.mu.Unlock()
	if unproved != nil {
		lease.Request = *unproved
	}
	lease.Timestamp = k.opts.Now()

	// The limit of the store is shorter, so that after a write that hangs another one can save the lease.
	ctx, cancel := context.WithTimeout(ctx, k.fence.left())
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
	k.conflicts = 0
	k.mu.Lock()
	if unproved != nil {
		k.lease.Request, k.unproved = *unproved, nil
		k.requested.send()
	}
	k.wrote = began.monotonic
	k.renewAt = began.monotonic.Add(jitter(k.opts.Renew))
	k.items -= items
	k.storedLocked(etag, version)
	k.mu.Unlock()
	notify(k.obs.CheckpointWritten, CheckpointWritten{
		LeaseRef: lease.ref(), Continuation: lease.Continuation, LSN: lease.LSN, Took: k.clock.Now().Sub(began.monotonic),
	})
	return nil
}

// storedLocked records that the lease is stored up to a version. Called with mu.
func (k *keeper) storedLocked(etag string, version uint64) {
	k.lease.ETag, k.stored = etag, version
	k.wakeLocked()
}

// wakeLocked wakes the callers that wait for a write. Called with mu.
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

// finish applies edit and writes the record a last time, after run has ended. It retries
// until it succeeds, the lease is lost or the fence passes, even if ctx ends.
func (k *keeper) finish(ctx context.Context, edit func(*Lease)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.fence.left())
	defer cancel()
	k.change(func(l *Lease) urgency { edit(l); return later })
	retry := backoff{min: k.opts.Renew / 64, max: k.opts.Renew / 4} // short, because other hosts wait for the lease
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
