package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
)

// Item is a document as a client sees it.
type Item struct {
	ETag   string
	Body   []byte // the JSON text with its system properties
	Number uint64 // rises with every insertion into the container
	LSN    uint64 // of its last write
}

// Commit is the outcome of a transaction.
type Commit struct {
	LSN   uint64
	Range string // id of the physical partition
}

// Tx is a transaction on one logical partition. It sees its own changes; others
// see all of them or none. It is used by one goroutine, inside Update.
type Tx struct {
	c       *Container
	part    *Partition
	state   *containerState
	now     int64
	lsn     uint64
	seq     uint32
	number  uint64 // last document number given out
	changes []change
	key     []byte // scratch
}

// change is what a transaction does to one id; the last one counts.
type change struct {
	id     string
	old    pointer // in the store, if exists
	exists bool    // an entry is in the store, live or expired
	now    pointer
	value  []byte // document record; nil means deleted
	head   int    // length of the record's head; the body follows
}

// Update runs fn in a transaction on one logical partition and commits what it
// did. If fn fails nothing is changed and its error is returned as it is. A
// transaction that changed nothing takes no LSN.
//
// fn runs while other writers of the container wait: it must not block.
func (c *Container) Update(part *Partition, fn func(*Tx) error) (Commit, error) {
	commit, wrote, err := c.apply(part, fn)
	if err != nil || !wrote {
		return commit, err
	}
	return commit, c.store.acknowledge(c)
}

var txPool = sync.Pool{New: func() any { return new(Tx) }}

func (c *Container) apply(part *Partition, fn func(*Tx) error) (commit Commit, wrote bool, err error) {
	tx, _ := txPool.Get().(*Tx)
	defer func() {
		clear(tx.changes)
		*tx = Tx{changes: tx.changes[:0], key: tx.key[:0]}
		txPool.Put(tx)
	}()
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.gone.Load() {
		return Commit{}, false, fmt.Errorf("container %s: %w", c.RID, ErrNotFound)
	}
	tx.c, tx.part, tx.state = c, part, c.state.Load()
	tx.now, tx.lsn, tx.number = c.store.now().UnixMilli(), c.lsn+1, c.lastDocument
	at := tx.state.Topology.Locate(part.EPK)
	if err := fn(tx); err != nil {
		return Commit{LSN: c.lsn, Range: at.ID}, false, err
	}
	if len(tx.changes) == 0 {
		return Commit{LSN: c.lsn, Range: at.ID}, false, nil
	}
	if err := tx.write(at.Segment); err != nil {
		return Commit{}, false, err
	}
	c.lsn, c.lastDocument = tx.lsn, tx.number
	c.applied.Store(tx.lsn)
	if c.store.durable == nil {
		c.publish(tx.lsn)
	}
	return Commit{LSN: tx.lsn, Range: at.ID}, true, nil
}

// find returns what the transaction knows of id. The pointer is valid until the
// next change.
func (tx *Tx) find(id string) (ch *change, live bool, err error) {
	for i := range tx.changes {
		if tx.changes[i].id == id {
			return &tx.changes[i], tx.changes[i].value != nil, nil
		}
	}
	found := change{id: id}
	tx.key = tx.c.space.item(tx.key[:0], tx.part, id)
	value, closer, err := tx.c.store.db.Get(tx.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return &found, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read item index: %w", asCorruption(err))
	}
	found.exists = true
	found.old, err = decodePointer(value)
	if err := errors.Join(err, closer.Close()); err != nil {
		return nil, false, err
	}
	found.now = found.old
	ttl := lifetime(tx.state.Definition.DefaultTTL)
	return &found, !ttl.expired(found.old.stamp, tx.now), nil
}

// ETag returns the ETag of a live document; found is false if there is none.
func (tx *Tx) ETag(id string) (etag string, found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || !live {
		return "", false, err
	}
	return string(appendETag(nil, tx.c.rid, &ch.now)), true, nil
}

// Get returns a live document. Its body must not be kept past the transaction.
func (tx *Tx) Get(id string) (item Item, found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || !live {
		return Item{}, false, err
	}
	if ch.value != nil {
		return tx.c.item(&ch.now, ch.value[ch.head:]), true, nil
	}
	tx.key = tx.c.space.document(tx.key[:0], ch.now.document)
	value, closer, err := tx.c.store.db.Get(tx.key)
	if err != nil {
		return Item{}, false, fmt.Errorf("read document: %w", asCorruption(err))
	}
	rec, err := decodeRecord(append([]byte(nil), value...))
	if err := errors.Join(err, closer.Close()); err != nil {
		return Item{}, false, err
	}
	return tx.c.item(&rec.pointer, rec.body), true, nil
}

// Put creates or replaces the document id. The returned body must not be kept
// past the transaction.
func (tx *Tx) Put(doc *document.Document) (Item, error) {
	found, live, err := tx.find(doc.ID)
	if err != nil {
		return Item{}, err
	}
	ch := *found
	if !live {
		tx.number++
		ch.now.document = tx.number
	}
	ch.now.position = position{lsn: tx.lsn, seq: tx.seq}
	ch.now.stamp = stamp{millis: tx.now, ttl: doc.TTL}
	tx.seq++
	buf := make([]byte, 0, pointerSize+len(tx.part.EPK)+len(tx.part.encoded)+len(doc.ID)+doc.Size()+systemSize)
	buf = appendRecordHead(buf, &ch.now, tx.part, doc.ID)
	ch.head = len(buf)
	ch.value = tx.c.appendSystem(doc.AppendMembers(buf), &ch.now)
	tx.record(ch)
	return tx.c.item(&ch.now, ch.value[ch.head:]), nil
}

// Delete removes a live document; found is false if there is none.
func (tx *Tx) Delete(id string) (found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || !live {
		return false, err
	}
	gone := *ch
	gone.value = nil
	tx.seq++
	tx.record(gone)
	return true, nil
}

func (tx *Tx) record(ch change) {
	for i := range tx.changes {
		if tx.changes[i].id == ch.id {
			tx.changes[i] = ch
			return
		}
	}
	tx.changes = append(tx.changes, ch)
}

// write applies all changes to Pebble, atomically and without waiting for the disk.
func (tx *Tx) write(segment uint32) error {
	space, key := tx.c.space, tx.key
	batch := tx.c.store.db.NewBatch()
	defer batch.Close()
	var value []byte
	for i := range tx.changes {
		ch := &tx.changes[i]
		if ch.exists {
			key = space.feed(key[:0], ch.old.position)
			_ = batch.Delete(key, nil) // a batch in memory does not fail
			if ch.value == nil || ch.now.document != ch.old.document {
				key = space.document(key[:0], ch.old.document)
				_ = batch.Delete(key, nil)
			}
		}
		if ch.value == nil {
			if ch.exists {
				key = space.item(key[:0], tx.part, ch.id)
				_ = batch.Delete(key, nil)
				key = space.idEntry(key[:0], ch.id, tx.part)
				_ = batch.Delete(key, nil)
			}
			continue
		}
		ch.now.segment = segment
		binary.BigEndian.PutUint32(ch.value[8:], segment) // the record's head starts with the pointer
		key = space.document(key[:0], ch.now.document)
		_ = batch.Set(key, ch.value, nil)
		key, value = space.item(key[:0], tx.part, ch.id), ch.now.append(value[:0])
		_ = batch.Set(key, value, nil)
		key, value = space.feed(key[:0], ch.now.position), appendFeedEntry(value[:0], &ch.now, tx.part.EPK)
		_ = batch.Set(key, value, nil)
		if !ch.exists || ch.now.document != ch.old.document {
			key, value = space.idEntry(key[:0], ch.id, tx.part), appendIDEntry(value[:0], ch.now.document, ch.id)
			_ = batch.Set(key, value, nil)
		}
	}
	key = space.counters(key[:0])
	value = binary.BigEndian.AppendUint64(value[:0], tx.lsn)
	value = binary.BigEndian.AppendUint64(value, tx.number)
	_ = batch.Set(key, value, nil)
	tx.key = key
	if err := tx.c.store.db.Apply(batch, pebble.NoSync); err != nil {
		return fmt.Errorf("write transaction: %w", asCorruption(err))
	}
	return nil
}
