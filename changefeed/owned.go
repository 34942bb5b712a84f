package changefeed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// owned is one lease this host holds. Everything that changes the record goes
// through it, so that there is one writer, one ETag and no self-made conflict:
// renewals, checkpoints, attempts and health are the same write.
//
// keep runs on a goroutine of its own; the other methods are safe for
// concurrent use.
type owned struct {
	r     *run
	fence *fence
	kick  chan struct{} // capacity 1: the record changed, or must be written now

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

// newOwned wraps a lease whose acquisition began at began.
func newOwned(r *run, lease Lease, f *fence, began time.Time) *owned {
	return &owned{
		r: r, fence: f, lease: lease, wrote: began, renewAt: began.Add(jitter(r.opts.Renew)),
		kick: make(chan struct{}, 1), synced: make(chan struct{}),
	}
}

// snapshot is the record as it should be stored.
func (o *owned) snapshot() Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lease.clone()
}

// advance moves the checkpoint. With items handled it is written within
// Options.CheckpointEvery; a bare move of the token waits for the next renewal,
// because losing it costs nothing.
func (o *owned) advance(continuation string, items int, lsn, changeTime int64) {
	o.change(func(l *Lease) urgency {
		if items == 0 {
			if l.Continuation == continuation {
				return unchanged
			}
			l.Continuation, l.Since = continuation, time.Time{}
			return later
		}
		l.Continuation, l.Since = continuation, time.Time{}
		l.LSN, l.ChangeTime = lsn, changeTime
		l.Attempts = prune(l.Attempts, lsn)
		o.items += items
		return soon
	})
}

// urgency is when a change of the record must be stored.
type urgency int

const (
	unchanged urgency = iota
	later             // with the next renewal
	soon              // within Options.CheckpointEvery
	now               // at once
)

// change edits the record; edit says how soon that must be stored.
func (o *owned) change(edit func(*Lease) urgency) {
	o.mu.Lock()
	u := edit(&o.lease)
	if u >= later {
		o.version++
	}
	if u >= soon {
		o.soon = o.version
	}
	if u >= now {
		o.urgent = o.version
	}
	o.mu.Unlock()
	if u >= soon {
		o.wake()
	}
}

func (o *owned) wake() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// flush writes everything changed so far and waits until it is stored.
func (o *owned) flush(ctx context.Context) error {
	o.mu.Lock()
	want := o.version
	if o.stored >= want {
		err := o.ended
		o.mu.Unlock()
		return err
	}
	o.urgent = max(o.urgent, want)
	o.mu.Unlock()
	o.wake()
	for {
		o.mu.Lock()
		done, err, synced := o.stored >= want, o.ended, o.synced
		o.mu.Unlock()
		switch {
		case done:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-synced:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// renew writes the record now, whether it changed or not, and waits for it.
func (o *owned) renew(ctx context.Context) error {
	o.markUrgent()
	return o.flush(ctx)
}

// keep renews the lease and writes what changes until ctx ends (nil), or until
// ownership does: ErrLeaseLost or ErrFenced.
func (o *owned) keep(ctx context.Context) error {
	retry := backoff{min: o.r.opts.Renew / 16, max: o.r.opts.Renew / 2}
	ring := newAlarm(o.r.clock)
	defer ring.off()
	for {
		ring.set(o.due())
		select {
		case <-ctx.Done():
			return nil
		case <-ring.ring:
		case <-o.kick:
			if o.due() > 0 {
				continue
			}
		}
		err := o.write(ctx)
		switch {
		case err == nil:
			retry.reset()
			continue
		case errors.Is(err, errRewritten):
			o.markUrgent()
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrLeaseLost) || o.fence.passed():
			if !errors.Is(err, ErrLeaseLost) {
				err = fmt.Errorf("%w: %w", ErrFenced, err)
			}
			o.end(err)
			return err
		}
		o.r.obs.leaseError(LeaseError{Lease: o.lease.ID, Op: "renew", Err: err})
		if err := sleep(ctx, o.r.clock, min(retry.next(err), o.untilFence()), nil); err != nil {
			return nil
		}
		o.markUrgent()
	}
}

// due is how long until the next write: at once if somebody waits for it, soon
// if a checkpoint does, else when the renewal is.
func (o *owned) due() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.urgent > o.stored || o.items >= o.r.opts.CheckpointItems {
		return 0
	}
	at := o.renewAt
	if o.soon > o.stored {
		if next := o.wrote.Add(o.r.opts.CheckpointEvery); next.Before(at) {
			at = next
		}
	}
	return max(0, at.Sub(o.r.clock.Now()))
}

func (o *owned) untilFence() time.Duration {
	return max(0, o.fence.trusted().Sub(o.r.clock.Now()))
}

func (o *owned) markUrgent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version++
	o.urgent = o.version
}

// write stores the record once. After a conflict it looks whether the lease is
// still this host's: an operator or an answer that got lost may have changed the
// ETag.
func (o *owned) write(ctx context.Context) error {
	began := o.r.watch().glance()
	o.mu.Lock()
	lease, version, items := o.lease.clone(), o.version, o.items
	o.mu.Unlock()
	lease.Timestamp = o.r.opts.Now()

	ctx, cancel := context.WithTimeout(ctx, min(o.untilFence(), o.r.opts.Expiry/4))
	defer cancel()
	etag, err := o.r.store.Replace(ctx, lease.encode())
	switch {
	case errors.Is(err, ErrETagMismatch):
		return o.reconcile(ctx)
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: record deleted", ErrLeaseLost)
	case err != nil:
		return fmt.Errorf("write lease %s: %w", lease.ID, err)
	}
	o.fence.extend(began)
	o.mu.Lock()
	o.lease.ETag = etag
	o.wrote, o.stored = began.own, version
	o.renewAt = began.own.Add(jitter(o.r.opts.Renew))
	o.items -= items
	close(o.synced)
	o.synced = make(chan struct{})
	o.mu.Unlock()
	took := o.r.clock.Now().Sub(began.own)
	o.r.timing.Checkpoint.observe(took)
	o.r.obs.checkpointed(CheckpointWritten{Lease: lease.ID, Continuation: lease.Continuation, LSN: lease.LSN, Took: took})
	return nil
}

// reconcile re-reads a record whose ETag was not the expected one.
func (o *owned) reconcile(ctx context.Context) error {
	o.mu.Lock()
	mine := o.lease.clone()
	o.mu.Unlock()
	record, err := o.r.store.Read(ctx, mine.ID)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: record deleted", ErrLeaseLost)
	}
	if err != nil {
		return fmt.Errorf("read lease %s: %w", mine.ID, err)
	}
	theirs, err := decodeLease(record)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	switch {
	case theirs.Epoch < mine.Epoch:
		return fmt.Errorf("read lease %s: stale", mine.ID)
	case theirs.Epoch > mine.Epoch, theirs.Incarnation != mine.Incarnation, theirs.State != LeaseLive:
		return fmt.Errorf("%w: %s has it now, epoch %d", ErrLeaseLost, theirs.host(), theirs.Epoch)
	}
	o.adopt(theirs)
	return errRewritten
}

// errRewritten: the ETag was taken over; write again at once.
var errRewritten = errors.New("record changed by somebody else, still owned")

// adopt takes over the parts of the record that others may write.
func (o *owned) adopt(theirs Lease) {
	o.mu.Lock()
	o.lease.ETag = theirs.ETag
	o.lease.Request = theirs.Request
	o.lease.properties, o.lease.unknown = theirs.properties, theirs.unknown
	o.version++
	o.mu.Unlock()
	o.r.wakeWorker(theirs.ID)
}

// end makes every waiter return the reason and ends the handlers' context.
func (o *owned) end(why error) {
	o.mu.Lock()
	if o.ended == nil {
		o.ended = why
	}
	close(o.synced)
	o.synced = make(chan struct{})
	o.mu.Unlock()
	cause := ErrLeaseLost
	if errors.Is(why, ErrFenced) {
		cause = ErrFenced
	}
	o.fence.revoke(cause)
}

// finish writes the record a last time, after keep has ended: edit says what
// becomes of it. It tries until it succeeds, the lease is lost or ctx ends.
func (o *owned) finish(ctx context.Context, edit func(*Lease)) error {
	o.change(func(l *Lease) urgency { edit(l); return later })
	retry := backoff{min: o.r.opts.Renew / 64, max: o.r.opts.Renew / 4}
	for {
		err := o.write(ctx)
		if err == nil || errors.Is(err, ErrLeaseLost) || o.fence.passed() {
			return err
		}
		pause := retry.next(err)
		if errors.Is(err, errRewritten) {
			pause = 0
		}
		if sleep(ctx, o.r.clock, min(pause, o.untilFence()), nil) != nil {
			return err
		}
	}
}

// prune forgets the attempts of documents the checkpoint has passed.
func prune(attempts []DocumentAttempts, lsn int64) []DocumentAttempts {
	kept := attempts[:0:0]
	for _, a := range attempts {
		if documentLSN(a.Document) > lsn {
			kept = append(kept, a)
		}
	}
	return kept
}
