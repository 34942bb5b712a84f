package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// Get returns the live document with an id in a logical partition as of a moment, or
// ErrNotFound. Its body is appended to dst.
func (c *Container) Get(dst []byte, part *Partition, id string, at *Moment) (Item, error) {
	v := c.store.viewAt(at)
	defer v.release()
	var scratch [256]byte
	value, closer, err := v.Get(c.space.item(scratch[:0], part, id))
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
	return c.read(v, dst, p.created)
}

// read returns the live document at a position. After the caller has found the position, the
// document may have been replaced, then read returns the new version, or deleted.
func (c *Container) read(v view, dst []byte, created position) (Item, error) {
	var scratch [32]byte
	value, closer, err := v.Get(c.space.document(scratch[:0], created))
	if errors.Is(err, pebble.ErrNotFound) {
		return Item{}, ErrNotFound
	}
	if err != nil {
		return Item{}, fmt.Errorf("read document: %w", disk.AsDamage(err))
	}
	rec, err := decodeRecord(value)
	var item Item
	if err == nil {
		if c.ttl().expired(rec.stamp, c.store.now().UnixMilli()) {
			err = ErrNotFound
		} else {
			item = c.item(&rec.pointer, append(dst, rec.body...))
		}
	}
	return item, errors.Join(err, closer.Close())
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
