package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// A container that was created with Options.Undo keeps, for each document of each transaction,
// the record from before it, so that Lose and BeginRestore can return to an earlier state. An
// entry is the Unix time of the transaction in ms, followed by a document record. A record
// without a position means that the document did not exist.
//
// A split or merge does not matter here: the segments of one document have increasing numbers,
// so the key order of its entries is the order of its writes.

// keepPrevious adds the entries of a transaction to its batch.
func (tx *Tx) keepPrevious(w *writer) error {
	for i := range tx.changes {
		ch := &tx.changes[i]
		entry := binary.BigEndian.AppendUint64(nil, uint64(tx.now))
		if ch.exists {
			value, closer, err := tx.c.store.db.Get(tx.c.space.document(nil, ch.old.created))
			if err != nil {
				return fmt.Errorf("read document: %w", disk.AsDamage(err))
			}
			entry = append(entry, value...)
			if err := closer.Close(); err != nil {
				return err
			}
		} else {
			entry = appendRecordHead(entry, &pointer{}, tx.part, ch.id)
		}
		at := position{segment: tx.segment, lsn: tx.lsn, seq: uint32(i)}
		_ = w.Set(at.append(w.space.prefix(nil, kindUndo)), entry, nil) // adding to a batch does not fail
	}
	return nil
}

// earlier is a document before the writes that are undone.
type earlier struct {
	part *Partition
	rec  record
	raw  []byte // the record
}

// reverter adds the return of documents to an earlier state to a batch. Its caller holds writing.
type reverter struct {
	*Container
	batch *pebble.Batch
}

// revert returns documents to their state before all transactions in the bounds of keys that
// happened after a time in Unix ms.
func (c reverter) revert(from, to []byte, after int64) error {
	it, err := c.store.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("read previous documents: %w", disk.AsDamage(err))
	}
	docs := make(map[string]*earlier)
	for it.First(); it.Valid(); it.Next() {
		raw := append([]byte(nil), it.Value()...)
		if len(raw) < 8 {
			return errors.Join(fmt.Errorf("%w: undo entry of %d bytes", disk.ErrDamaged, len(raw)), it.Close())
		}
		if int64(binary.BigEndian.Uint64(raw)) <= after {
			continue
		}
		rec, err := decodeRecord(raw[8:])
		if err != nil {
			return errors.Join(err, it.Close())
		}
		_ = c.batch.Delete(it.Key(), nil)
		part := &Partition{EPK: rec.epk, encoded: rec.encoded}
		if key := string(c.space.item(nil, part, string(rec.id))); docs[key] == nil {
			docs[key] = &earlier{part, rec, raw[8:]}
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("read previous documents: %w", disk.AsDamage(err))
	}
	for key, doc := range docs { // the keys of one document are independent of those of others
		if err := c.replace([]byte(key), doc); err != nil {
			return err
		}
	}
	for _, doc := range docs { // last, because another document may have taken the key
		if !doc.exists() {
			continue
		}
		for _, key := range c.space.uniqueEntries(doc.part, c.Definition().Unique, doc.rec.body) {
			_ = c.batch.Set(key, doc.rec.id, nil)
		}
	}
	return nil
}

// exists reports whether the document existed before.
func (e *earlier) exists() bool { return e.rec.created.lsn > 0 }

// replace replaces a document by its earlier state.
func (c reverter) replace(key []byte, doc *earlier) error {
	ch := change{id: string(doc.rec.id), now: doc.rec.pointer}
	if doc.exists() {
		ch.value = doc.raw
	}
	value, closer, err := c.store.db.Get(key)
	switch {
	case err == nil:
		ch.exists = true
		ch.old, err = decodePointer(value)
		if err := errors.Join(err, closer.Close()); err != nil {
			return err
		}
		if err := c.forgetUniqueAt(doc.part, ch.old.created); err != nil {
			return err
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return fmt.Errorf("read item index: %w", disk.AsDamage(err))
	}
	w := &writer{Batch: c.batch, space: c.space, part: doc.part}
	w.document(&ch)
	w.item(&ch, c.items)
	w.id(&ch)
	w.feed(&ch)
	return nil
}

func (c reverter) forgetUniqueAt(part *Partition, created position) error {
	value, closer, err := c.store.db.Get(c.space.document(nil, created))
	if err != nil {
		return fmt.Errorf("read document: %w", disk.AsDamage(err))
	}
	rec, err := decodeRecord(value)
	if err == nil {
		err = c.forgetUnique(c.batch, part, &rec)
	}
	return errors.Join(err, closer.Close())
}

// canRevert refuses a container that does not have the data to return to an earlier state.
func canRevert(c *Container) error {
	switch {
	case !c.state.Load().Undo:
		return fmt.Errorf("%w: the container does not keep previous documents: create it with the option KeepWrites", ErrInvalid)
	case c.store.past.reach > 0:
		return fmt.Errorf("%w: stale reads could show the writes that are undone: leave the option StaleReads out", ErrInvalid)
	case c.Definition().Retention > 0:
		return fmt.Errorf("%w: the feed of all versions cannot be undone: leave the changeFeedPolicy out", ErrInvalid)
	}
	return nil
}

// Lose removes the writes of a physical partition after an LSN, as a failover to a replica that
// lags. The next transaction has the next LSN. A loss that reaches back beyond the last split or
// merge is refused.
func (c *Container) Lose(rangeID string, after uint64) error {
	if err := canRevert(c); err != nil {
		return err
	}
	var counts *counter
	err := c.change(func(next *containerState, batch *pebble.Batch) error {
		rng, err := next.Topology.Find(rangeID)
		if err == nil {
			err = c.settle(next.Topology)
		}
		if err != nil {
			return err
		}
		if last := rng.counter.applied.Load(); after < rng.Start || after >= last {
			return fmt.Errorf("%w: range %s has the LSNs from %d to %d since its creation, so the writes after %d cannot be lost", ErrInvalid, rangeID, rng.Start+1, last, after)
		}
		from := position{segment: rng.Segment, lsn: after + 1}.append(c.space.prefix(nil, kindUndo))
		if err := (reverter{c, batch}).revert(from, c.space.segment(nil, kindUndo, rng.Segment+1), 0); err != nil {
			return err
		}
		_ = batch.Set(c.space.counter(nil, rng.Segment), appendCounter(nil, after), nil)
		next.Topology = next.Topology.rewrite(func(r *Range) {
			if r.ID == rangeID {
				// A new counter, because a commit may still publish the lost LSN to the old one.
				counts = newCounter(after)
				r.Epoch, r.counter = r.Epoch+1, counts
			}
		})
		return nil
	})
	if err != nil {
		return err
	}
	return c.store.acknowledge(counts) // on disk, readers see the last published state
}

// BeginRestore returns a container to its state at a time and hides it until EndRestore. The
// restored documents are not part of the change feed, and LSNs begin at 1 again.
func (c *Container) BeginRestore(at time.Time) error {
	if err := canRevert(c); err != nil {
		return err
	}
	counts := newCounter(0)
	err := c.change(func(next *containerState, batch *pebble.Batch) error {
		t := next.Topology
		if next.Restoring {
			return fmt.Errorf("%w: the container is being restored", ErrInvalid)
		}
		if int(t.NextSegment)+len(t.Ranges) > maxSegments {
			return fmt.Errorf("%w: the container has had too many physical partitions", ErrInvalid)
		}
		if err := c.settle(t); err != nil {
			return err
		}
		from := c.space.prefix(nil, kindUndo)
		if err := (reverter{c, batch}).revert(from, after(from), at.UnixMilli()); err != nil {
			return err
		}
		segment := t.NextSegment
		next.Topology = t.rewrite(func(r *Range) {
			r.Restored = append(append([]uint32(nil), r.Restored...), r.segments()...)
			r.Segment, r.Start, r.History, r.Parents = segment, 0, nil, nil
			r.Epoch, r.counter = 0, newCounter(0)
			segment++
		})
		next.Topology.NextSegment = segment
		next.Restoring = true
		return nil
	})
	if err != nil {
		return err
	}
	return c.store.acknowledge(counts)
}

// EndRestore shows a restored container.
func (c *Container) EndRestore() error {
	return c.change(func(next *containerState, _ *pebble.Batch) error {
		if !next.Restoring {
			return fmt.Errorf("%w: the container is not being restored", ErrInvalid)
		}
		next.Restoring = false
		return nil
	})
}

// Restoring returns a container that BeginRestore has hidden, or ErrNotFound.
func (s *Store) Restoring(db *Database, id string) (*Container, error) {
	if c := anyContainer(s, db, id); c != nil && c.Restoring() {
		return c, nil
	}
	return nil, fmt.Errorf("container %s is not being restored: %w", id, ErrNotFound)
}

// rewrite returns a copy of the topology with changed ranges.
func (t *Topology) rewrite(change func(*Range)) *Topology {
	next := *t
	next.Version++
	next.Ranges = append([]Range(nil), t.Ranges...)
	for i := range next.Ranges {
		change(&next.Ranges[i])
	}
	return &next
}
