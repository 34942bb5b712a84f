package changefeed

import (
	"context"
	"time"
)

// advance moves the checkpoint. With items handled it is written within
// Options.CheckpointEvery. A move without items waits for the next renewal, because losing
// it costs nothing.
func (k *keeper) advance(continuation string, items int, lsn, changeTime int64) {
	k.change(func(l *Lease) urgency {
		l.Continuation, l.Since = continuation, time.Time{}
		if items == 0 {
			return later
		}
		l.LSN, l.ChangeTime = lsn, changeTime
		return soon
	})
}

// checkpointItems is the number of items handled since the last write that makes the next
// one due at once. It bounds the redelivery after a crash of a fast range.
const checkpointItems = 10_000

// urgency is the deadline for storing a change of the record.
type urgency int

const (
	later urgency = iota // with the next renewal
	soon                 // within Options.CheckpointEvery
	now                  // at once
)

// change edits the record. edit returns how soon that must be stored.
func (k *keeper) change(edit func(*Lease) urgency) {
	k.mu.Lock()
	u := edit(&k.lease)
	k.version++
	if u >= soon {
		k.soon = k.version
	}
	if u >= now {
		k.urgent = k.version
	}
	k.mu.Unlock()
	if u >= soon {
		k.kick.send()
	}
}

// flush writes all changes made so far and waits until they are stored.
func (k *keeper) flush(ctx context.Context) error {
	k.mu.Lock()
	want := k.version
	k.urgent = want
	k.mu.Unlock()
	k.kick.send()
	for {
		k.mu.Lock()
		done, err, synced := k.stored >= want, k.ended, k.synced
		k.mu.Unlock()
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

// rewrite requests a write of the record now, even without a change.
func (k *keeper) rewrite() { k.change(func(*Lease) urgency { return now }) }

// renew does the same and waits for the write.
func (k *keeper) renew(ctx context.Context) error {
	k.rewrite()
	return k.flush(ctx)
}
