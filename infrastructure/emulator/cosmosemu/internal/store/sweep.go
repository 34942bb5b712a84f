package store

import (
	"bytes"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// sweepStep limits the documents that a sweep reads per container and tick, because writers wait
// while it removes them.
const sweepStep = 2000

// sweepLoop frees the space of expired documents until the store closes.
func (s *Store) sweepLoop(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	next := make(map[*Container]position) // where the last step ended
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for _, db := range s.Databases() {
			for _, c := range s.Containers(db) {
				if err := c.trim(); err != nil {
					s.log.Error("old versions not removed", "container", c.RID, "error", err)
				}
				if c.ttl() == 0 {
					continue
				}
				at, err := c.sweep(next[c])
				if err != nil {
					s.log.Error("expired documents not removed", "container", c.RID, "error", err)
				}
				next[c] = at
			}
		}
		for c := range next {
			if c.gone.Load() {
				delete(next, c)
			}
		}
	}
}

// sweep reads a number of documents from a position on and removes the expired ones. It
// returns the position to continue at, the zero position at the end. A removal uses no LSN,
// because the change feed in latest-version mode does not contain it, unless the container
// keeps its deletions.
func (c *Container) sweep(from position) (next position, err error) {
	expired, next, err := c.findExpired(from)
	if err != nil || len(expired) == 0 {
		return next, err
	}
	if c.retention() > 0 {
		return next, c.expire(expired)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.gone.Load() {
		return next, nil
	}
	batch := c.store.db.NewBatch()
	defer batch.Close()
	now, ttl := c.store.now().UnixMilli(), c.ttl()
	for _, created := range expired {
		value, closer, err := c.store.db.Get(c.space.document(nil, created))
		if err != nil {
			continue // deleted in the meantime
		}
		rec, err := decodeRecord(value)
		if err == nil && ttl.expired(rec.stamp, now) { // again, because it may have been replaced in the meantime
			w := &writer{Batch: batch, space: c.space, part: &Partition{EPK: rec.epk, encoded: rec.encoded}}
			err = c.forgetUnique(batch, w.part, &rec)
			w.remove(&change{id: string(rec.id), exists: true, old: rec.pointer})
		}
		if err := errors.Join(err, closer.Close()); err != nil {
			return from, err
		}
	}
	// The removals may delete the keys from which loadCounter reads the last LSN.
	for _, r := range c.Topology().Ranges {
		_ = batch.Set(c.space.counter(nil, r.Segment), appendCounter(nil, r.counter.applied.Load()), nil)
	}
	return next, c.store.db.Apply(batch, pebble.NoSync)
}

// expire removes expired documents of a container that keeps its deletions. Each removal
// uses an LSN and is part of the feed in all-versions-and-deletes mode.
func (c *Container) expire(expired []position) error {
	for _, created := range expired {
		value, closer, err := c.store.db.Get(c.space.document(nil, created))
		if err != nil {
			continue // deleted in the meantime
		}
		rec, err := decodeRecord(bytes.Clone(value))
		if err := errors.Join(err, closer.Close()); err != nil {
			return err
		}
		part := &Partition{EPK: rec.epk, encoded: rec.encoded}
		if _, err := c.Update(part, func(tx *Tx) error {
			_, err := tx.Expire(string(rec.id))
			return err
		}); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

func (w *writer) remove(ch *change) {
	w.document(ch)
	w.item(ch, nil)
	w.id(ch)
	w.feed(ch)
}

func (c *Container) findExpired(from position) (expired []position, next position, err error) {
	v := c.store.view()
	defer v.release()
	lower := c.space.prefix(nil, kindDocument)
	it, err := v.NewIter(&pebble.IterOptions{LowerBound: c.space.document(nil, from), UpperBound: after(lower)})
	if err != nil {
		return nil, from, err
	}
	now, ttl := c.store.now().UnixMilli(), c.ttl()
	seen := 0
	for it.First(); it.Valid() && seen < sweepStep; it.Next() {
		p, err := decodePointer(it.Value())
		if err != nil {
			_ = it.Close() // the first error is the one to report
			return nil, from, err
		}
		if ttl.expired(p.stamp, now) {
			expired = append(expired, p.created)
		}
		next = p.created
		seen++
	}
	if seen < sweepStep {
		next = position{}
	}
	return expired, next, it.Close()
}
