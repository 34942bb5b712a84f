package store

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// sweepStep bounds the documents looked at per container and tick.
const sweepStep = 2000

// sweepLoop frees the space of expired documents until the store closes.
func (s *Store) sweepLoop(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	next := make(map[*Container]uint64) // where the last step ended
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for _, db := range s.Databases() {
			for _, c := range s.Containers(db) {
				if c.ttl() == 0 {
					continue
				}
				at, err := c.sweep(next[c])
				if err != nil {
					s.log.Error("free expired documents", "container", c.RID, "error", err)
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

// sweep looks at the documents after number from and removes the expired ones.
// It returns where to go on, 0 at the end. Removal takes no LSN: the change feed
// in latest-version mode does not show it.
func (c *Container) sweep(from uint64) (next uint64, err error) {
	expired, next, err := c.findExpired(from)
	if err != nil || len(expired) == 0 {
		return next, err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.gone.Load() {
		return 0, nil
	}
	batch := c.store.db.NewBatch()
	defer batch.Close()
	now, ttl := c.store.now().UnixMilli(), c.ttl()
	for _, number := range expired {
		key := c.space.document(nil, number)
		value, closer, err := c.store.db.Get(key)
		if err != nil {
			continue // deleted meanwhile
		}
		rec, err := decodeRecord(value)
		if err == nil && ttl.expired(rec.stamp, now) {
			p := &Partition{EPK: rec.epk, encoded: rec.encoded}
			_ = batch.Delete(c.space.feed(nil, rec.position), nil) // a batch in memory does not fail
			_ = batch.Delete(c.space.item(nil, p, string(rec.id)), nil)
			_ = batch.Delete(c.space.idEntry(nil, string(rec.id), p), nil)
			_ = batch.Delete(key, nil)
		}
		if err := closer.Close(); err != nil {
			return from, err
		}
	}
	return next, c.store.db.Apply(batch, pebble.NoSync)
}

func (c *Container) findExpired(from uint64) (expired []uint64, next uint64, err error) {
	v := c.store.view()
	defer v.release()
	lower := c.space.prefix(nil, kindDocument)
	it, err := v.NewIter(&pebble.IterOptions{LowerBound: c.space.document(nil, from+1), UpperBound: after(lower)})
	if err != nil {
		return nil, from, err
	}
	now, ttl := c.store.now().UnixMilli(), c.ttl()
	seen := 0
	for it.First(); it.Valid() && seen < sweepStep; it.Next() {
		p, err := decodePointer(it.Value())
		if err != nil {
			_ = it.Close() // the first error counts
			return nil, from, err
		}
		if ttl.expired(p.stamp, now) {
			expired = append(expired, p.document)
		}
		next = p.document
		seen++
	}
	if seen < sweepStep {
		next = 0
	}
	return expired, next, it.Close()
}
