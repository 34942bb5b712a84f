package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// write applies all changes to Pebble, atomically and without waiting for the disk. It adds
// the keys kind by kind, because adjacent keys are cheap to add.
func (tx *Tx) write() error {
	size := 256
	for i := range tx.changes {
		size += len(tx.changes[i].value) + 384
	}
	for i := range tx.versions {
		size += len(tx.versions[i].entry) + 64
	}
	batch := tx.c.store.db.NewBatchWithSize(size)
	defer batch.Close()
	w := &writer{Batch: batch, space: tx.c.space, part: tx.part, key: tx.key, value: tx.value}
	removals := false
	for i := range tx.changes {
		w.document(&tx.changes[i])
		removals = removals || tx.changes[i].value == nil
	}
	for i := range tx.changes {
		w.item(&tx.changes[i], tx.c.items)
	}
	for i := range tx.changes {
		w.id(&tx.changes[i])
	}
	for i := range tx.changes {
		w.feed(&tx.changes[i])
	}
	for i := range tx.versions {
		v := &tx.versions[i]
		w.key = v.at.append(w.space.prefix(w.key[:0], kindVersion))
		_ = w.Set(w.key, v.entry, nil)
	}
	w.unique(tx.claims)
	if tx.state.Undo {
		if err := tx.keepPrevious(w); err != nil {
			return err
		}
	}
	if removals { // they may delete the keys from which loadCounter reads the last LSN
		_ = batch.Set(w.space.counter(nil, tx.segment), appendCounter(nil, tx.lsn), nil)
	}
	tx.key, tx.value = w.key, w.value
	if err := tx.c.store.db.Apply(batch, pebble.NoSync); err != nil {
		return fmt.Errorf("write transaction: %w", disk.AsDamage(err))
	}
	return nil
}

// writer adds the keys of changes to a batch, which does not fail.
type writer struct {
	*pebble.Batch
	space      keySpace
	part       *Partition
	key, value []byte // scratch
}

// moved reports whether the document leaves its position in the store.
func (ch *change) moved() bool {
	return ch.exists && (ch.value == nil || ch.now.created != ch.old.created)
}

func (w *writer) document(ch *change) {
	if ch.moved() {
		w.key = w.space.document(w.key[:0], ch.old.created)
		_ = w.Delete(w.key, nil)
	}
	if ch.value != nil {
		w.key = w.space.document(w.key[:0], ch.now.created)
		_ = w.Set(w.key, ch.value, nil)
	}
}

func (w *writer) item(ch *change, known *filter) {
	w.key = w.space.item(w.key[:0], w.part, ch.id)
	switch {
	case ch.value != nil:
		w.value = ch.now.append(w.value[:0])
		_ = w.Set(w.key, w.value, nil)
		if !ch.exists {
			known.add(w.key)
		}
	case ch.exists:
		_ = w.Delete(w.key, nil)
	}
}

func (w *writer) id(ch *change) {
	w.key = w.space.idEntry(w.key[:0], ch.id, w.part)
	switch {
	case ch.value != nil && (!ch.exists || ch.moved()):
		w.value = appendIDEntry(w.value[:0], ch.now.created, ch.id)
		_ = w.Set(w.key, w.value, nil)
	case ch.value == nil && ch.exists:
		_ = w.Delete(w.key, nil)
	}
}

func (w *writer) feed(ch *change) {
	if ch.exists && ch.old.replaced() {
		w.key = w.space.feed(w.key[:0], ch.old.written)
		_ = w.Delete(w.key, nil)
	}
	if ch.value != nil && ch.now.replaced() {
		w.key, w.value = w.space.feed(w.key[:0], ch.now.written), appendFeedEntry(w.value[:0], &ch.now, w.part.EPK)
		_ = w.Set(w.key, w.value, nil)
	}
}
