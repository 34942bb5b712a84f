package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/internal/disk"
)

// Item is a document with its system properties.
type Item struct {
	ETag   string
	Body   []byte // the JSON text with its system properties
	Number uint64 // increases with every insertion into a physical partition
	LSN    uint64 // of its last write
}

// Commit is the outcome of a transaction.
type Commit struct {
	LSN   uint64 // of the physical partition
	Range string // its id
	Epoch int64  // see Range.Epoch
}

// Tx is a transaction on one logical partition. It sees its own changes; other readers see
// all of them or none. It is used by one goroutine, inside Update.
type Tx struct {
	c        *Container
	part     *Partition
	state    *containerState
	now      int64
	lsn      uint64
	segment  uint32 // of the history, to write to
	seq      uint32
	changes  []change
	versions []version // if the container keeps them
	claims   []claim   // if it has unique keys
	looked   change    // the last one read from the store, so that a write after a check needs no second read
	key      []byte    // scratch, as value
	value    []byte
	arena    []byte // records of this transaction
}

// maxPooledArena limits the scratch space of a pooled transaction, so that one large
// transaction does not hold its memory for ever.
const maxPooledArena = 1 << 20

// change is the change of one id in a transaction. For each id the last one is applied.
type change struct {
	id     string
	old    pointer // in the store, valid if exists
	exists bool    // an entry is in the store, live or expired
	now    pointer
	value  []byte // document record; nil means deleted
	head   int    // length of the record's head; the body follows
}

// Update runs fn in a transaction on one logical partition and commits its changes. If fn
// fails, nothing is changed and its error is returned unchanged. A transaction without
// changes uses no LSN. In every case Update returns only when all that fn has read is
// durable, because the error of fn can disclose it too: a client that repeats a create treats
// 409 as proof that its first try was stored.
//
// fn must not block, because other writers of the container wait for it.
func (c *Container) Update(part *Partition, fn func(*Tx) error) (Commit, error) {
	commit, at, wrote, err := c.apply(part, fn)
	if !wrote && (at == nil || at.settled()) {
		return commit, err
	}
	if failure := c.store.acknowledge(at); failure != nil {
		return commit, failure
	}
	return commit, err
}

var txPool = sync.Pool{New: func() any { return new(Tx) }}

func (c *Container) apply(part *Partition, fn func(*Tx) error) (commit Commit, count *counter, wrote bool, err error) {
	tx, _ := txPool.Get().(*Tx)
	defer func() {
		clear(tx.changes)
		if cap(tx.arena) <= maxPooledArena {
			*tx = Tx{changes: tx.changes[:0], key: tx.key[:0], value: tx.value[:0], arena: tx.arena[:0]}
			txPool.Put(tx)
		}
	}()
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.gone.Load() || c.Restoring() {
		return Commit{}, nil, false, fmt.Errorf("container %s: %w", c.RID, ErrNotFound)
	}
	tx.c, tx.part, tx.state = c, part, c.state.Load()
	at := tx.state.Topology.Locate(part.EPK)
	last := at.counter.applied.Load()
	tx.now, tx.lsn, tx.segment = c.store.now().UnixMilli(), last+1, at.Segment
	if err := fn(tx); err != nil {
		return Commit{LSN: last, Range: at.ID, Epoch: at.Epoch}, at.counter, false, err
	}
	if len(tx.changes) == 0 {
		return Commit{LSN: last, Range: at.ID, Epoch: at.Epoch}, at.counter, false, nil
	}
	if err := tx.write(); err != nil {
		return Commit{}, at.counter, false, err
	}
	at.counter.applied.Store(tx.lsn)
	if c.store.durable == nil { // in memory there is no fsync to wait for
		at.counter.publish(tx.lsn)
	}
	return Commit{LSN: tx.lsn, Range: at.ID, Epoch: at.Epoch}, at.counter, true, nil
}

// find returns the state of an id in the transaction. The pointer is valid until the next
// change.
func (tx *Tx) find(id string) (ch *change, live bool, err error) {
	for i := range tx.changes {
		if tx.changes[i].id == id {
			return &tx.changes[i], tx.changes[i].value != nil, nil
		}
	}
	if tx.looked.id == id && id != "" {
		return &tx.looked, tx.looked.exists && !tx.expired(&tx.looked), nil
	}
	found := &tx.looked
	*found = change{id: id}
	tx.key = tx.c.space.item(tx.key[:0], tx.part, id)
	if !tx.c.items.mayHold(tx.key) {
		return found, false, nil
	}
	value, closer, err := tx.c.store.db.Get(tx.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return found, false, nil
	}
	if err != nil {
		found.id = ""
		return nil, false, fmt.Errorf("read item index: %w", disk.AsDamage(err))
	}
	found.old, err = decodePointer(value)
	if err := errors.Join(err, closer.Close()); err != nil {
		found.id = ""
		return nil, false, err
	}
	found.exists = true
	found.now = found.old
	return found, !tx.expired(found), nil
}

func (tx *Tx) expired(ch *change) bool {
	return lifetime(tx.state.Definition.DefaultTTL).expired(ch.old.stamp, tx.now)
}

// ETag returns the ETag of a live document; found is false if there is none.
func (tx *Tx) ETag(id string) (etag string, found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || !live {
		return "", false, err
	}
	var buf [etagLength]byte
	return string(appendETag(buf[:0], tx.c.rid, &ch.now)), true, nil
}

// Get returns a live document. Its body is valid until the transaction ends.
func (tx *Tx) Get(id string) (item Item, found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || !live {
		return Item{}, false, err
	}
	if ch.value != nil {
		return tx.c.item(&ch.now, ch.value[ch.head:]), true, nil
	}
	item, err = tx.load(ch)
	return item, err == nil, err
}

// load reads a live or expired document from the store.
func (tx *Tx) load(ch *change) (Item, error) {
	tx.key = tx.c.space.document(tx.key[:0], ch.now.created)
	value, closer, err := tx.c.store.db.Get(tx.key)
	if err != nil {
		return Item{}, fmt.Errorf("read document: %w", disk.AsDamage(err))
	}
	rec, err := decodeRecord(append([]byte(nil), value...))
	if err := errors.Join(err, closer.Close()); err != nil {
		return Item{}, err
	}
	return tx.c.item(&rec.pointer, rec.body), nil
}

// Put creates or replaces a document. The returned body is valid until the transaction ends.
// If Put fails with ErrNotUnique, the transaction is unchanged.
func (tx *Tx) Put(doc *document.Document) (Item, error) {
	if err := tx.CheckUnique(doc, ""); err != nil {
		return Item{}, err
	}
	found, live, err := tx.find(doc.ID)
	if err != nil {
		return Item{}, err
	}
	before, ch := *found, *found
	previous := ch.now.written.lsn
	if !live {
		previous = 0
		if err := tx.logExpiry(found); err != nil {
			return Item{}, err
		}
	}
	ch.now.written = position{segment: tx.segment, lsn: tx.lsn, seq: tx.seq}
	if !live {
		ch.now.created = ch.now.written
	}
	ch.now.stamp = stamp{millis: tx.now, ttl: doc.TTL}
	tx.seq++
	start := len(tx.arena)
	buf := appendRecordHead(tx.arena, &ch.now, tx.part, doc.ID)
	ch.head = len(buf) - start
	buf = tx.c.appendSystem(doc.AppendMembers(buf), &ch.now)
	tx.arena = buf
	value := buf[start:len(buf):len(buf)] // stays valid if the arena is reallocated
	if err := tx.claim(&before, value[ch.head:]); err != nil {
		return Item{}, err
	}
	ch.value = value
	tx.record(ch)
	if tx.state.Definition.Retention > 0 {
		tx.logVersion(ch.now.written.seq, ch.value[ch.head:], previous)
	}
	return tx.c.item(&ch.now, ch.value[ch.head:]), nil
}

// Delete removes a live document; found is false if there is none.
func (tx *Tx) Delete(id string) (found bool, err error) {
	ch, live, err := tx.find(id)
	if err != nil || !live {
		return false, err
	}
	gone := *ch
	if tx.state.Definition.Retention > 0 {
		item, _, err := tx.Get(id)
		if err == nil {
			err = tx.logDeletion(tx.seq, &item, id, false)
		}
		if err != nil {
			return false, err
		}
	}
	if err := tx.claim(&gone, nil); err != nil {
		return false, err
	}
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
