package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// Get returns the live document with an id in a logical partition as of a moment, or
// ErrNotFound. Its body is appended to dst.
func (c *Container) Get(dst []byte, part *Partition, id string, at *Moment) (Item, error) {
	v := c.store.viewAt(at)
	defer v.release()
	// The keys are built in the free space of dst, which the body overwrites: an array here would be
	// allocated, because Pebble keeps the key during the call.
	key := c.space.item(dst, part, id)[len(dst):]
	hash := maphash.Bytes(c.hints.seed, key)
	if created, known := c.hints.find(hash); known {
		if item, err := c.read(v, dst, created, part, id); !errors.Is(err, ErrNotFound) {
			return item, err
		}
		key = c.space.item(dst, part, id)[len(dst):]
	}
	value, closer, err := v.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return Item{}, ErrNotFound
	}
	if err != nil {
		return Item{}, fmt.Errorf("read item index: %w", disk.AsDamage(err))
	}
	p, err := decodePointer(value)
	if err := errors.Join(err, closer.Close()); err != nil {
		return Item{}, err
	}
	item, err := c.read(v, dst, p.created, part, id)
	if err == nil {
		c.hints.add(hash, p.created)
	}
	return item, err
}

// read returns the live document at a position, if it has the id and the logical partition. After
// the caller has found the position, the document may have been replaced, then read returns the new
// version, or deleted.
func (c *Container) read(v view, dst []byte, created position, part *Partition, id string) (Item, error) {
	value, closer, err := v.Get(c.space.document(dst, created)[len(dst):])
	if errors.Is(err, pebble.ErrNotFound) {
		return Item{}, ErrNotFound
	}
	if err != nil {
		return Item{}, fmt.Errorf("read document: %w", disk.AsDamage(err))
	}
	rec, err := decodeRecord(value)
	var item Item
	switch {
	case err != nil:
	case string(rec.id) != id || string(rec.encoded) != string(part.encoded):
		err = ErrNotFound
	case c.ttl().expired(rec.stamp, c.store.now().UnixMilli()):
		err = ErrNotFound
	default:
		item = c.item(&rec.pointer, append(dst, rec.body...))
	}
	return item, errors.Join(err, closer.Close())
}

// hints has the positions of documents that were read recently, by the hash of their key in the item
// index. With a hint a read needs one search in Pebble instead of two. A hint may be wrong: the
// document was deleted, or LoseWrites has freed its position for another one. So the document at the
// position is compared with the wanted one.
type hints struct {
	seed maphash.Seed

	mu    sync.Mutex // guards slots
	slots []hint     // allocated by the first read, because idle containers should stay small
}

type hint struct{ hash, number uint64 }

// maxHints takes 64 KB for a container.
const maxHints = 4096

func (h *hints) find(hash uint64) (at position, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots == nil {
		return position{}, false
	}
	slot := h.slots[hash%maxHints]
	return fromNumber(slot.number), slot.hash == hash
}

func (h *hints) add(hash uint64, at position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots == nil {
		h.slots = make([]hint, maxHints)
	}
	h.slots[hash%maxHints] = hint{hash, at.number()}
}

func (c *Container) ttl() lifetime { return lifetime(c.Definition().DefaultTTL) }

// IDByRID returns the id of the document with a resource id.
func (c *Container) IDByRID(text string) (id string, found bool) {
	r, err := parseRID(text)
	number, ok := DocumentNumber(text)
	if err != nil || !ok || string(r[:len(c.rid)]) != string(c.rid) {
		return "", false
	}
	v := c.store.view()
	defer v.release()
	value, closer, err := v.Get(c.space.document(nil, fromNumber(number)))
	if err != nil {
		return "", false
	}
	rec, err := decodeRecord(value)
	id = string(rec.id)
	return id, closer.Close() == nil && err == nil
}
