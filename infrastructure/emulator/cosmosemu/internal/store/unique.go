package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/internal/disk"
)

// UniqueKey lists paths whose values, taken together, must be unique in a logical partition.
// A missing value counts as null. Source: the service's documentation of unique keys.
type UniqueKey []document.Path

// claim is the change of one entry in the index of unique keys. For each key the last claim
// of a transaction is applied. The entry of an expired document stays until the sweep or
// until another document takes it, but it has no effect.
type claim struct {
	key []byte
	id  string // of the document that has the values, "" removes the entry
}

// uniqueEntries returns the keys of a document's entries.
func (n keySpace) uniqueEntries(p *Partition, keys []UniqueKey, body []byte) [][]byte {
	entries := make([][]byte, len(keys))
	for i, paths := range keys {
		hash := sha256.New()
		for _, path := range paths {
			value := document.Canonical(body, path)
			hash.Write(binary.AppendUvarint(nil, uint64(len(value)))) // never fails
			hash.Write(value)
		}
		key := append(n.prefix(nil, kindUnique), p.EPK...)
		key = binary.AppendUvarint(key, uint64(len(p.encoded)))
		key = append(append(key, p.encoded...), byte(i))
		entries[i] = hash.Sum(key)
	}
	return entries
}

// CheckUnique returns ErrNotUnique if another live document has one of doc's unique keys.
// The documents with doc's id and with the id replaced, which doc replaces, do not count.
func (tx *Tx) CheckUnique(doc *document.Document, replaced string) error {
	keys := tx.state.Definition.Unique
	if len(keys) == 0 {
		return nil
	}
	for i, key := range tx.c.space.uniqueEntries(tx.part, keys, append(doc.AppendMembers(nil), '}')) {
		holder, err := tx.holder(key)
		if err != nil {
			return err
		}
		if holder == "" || holder == doc.ID || holder == replaced {
			continue
		}
		if _, live, err := tx.find(holder); err != nil || live {
			return errors.Join(err, fmt.Errorf("%w: the item %q has the same values at %v", ErrNotUnique, holder, keys[i]))
		}
	}
	return nil
}

// holder returns the id of the document that an entry names, "" if there is no entry.
func (tx *Tx) holder(key []byte) (string, error) {
	for _, c := range slices.Backward(tx.claims) {
		if string(c.key) == string(key) {
			return c.id, nil
		}
	}
	return tx.c.storedHolder(key)
}

func (c *Container) storedHolder(key []byte) (id string, err error) {
	value, closer, err := c.store.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read unique key: %w", disk.AsDamage(err))
	}
	id = string(value)
	return id, closer.Close()
}

// claim frees the unique keys of a changed document and claims those of its new text. body
// is nil if the document is deleted.
func (tx *Tx) claim(ch *change, body []byte) error {
	keys := tx.state.Definition.Unique
	if len(keys) == 0 {
		return nil
	}
	if ch.exists || ch.value != nil {
		before, err := tx.text(ch)
		if err != nil {
			return err
		}
		for _, key := range tx.c.space.uniqueEntries(tx.part, keys, before) {
			holder, err := tx.holder(key)
			if err != nil {
				return err
			}
			if holder == ch.id { // otherwise another document has taken the key of an expired one
				tx.claims = append(tx.claims, claim{key: key})
			}
		}
	}
	if body != nil {
		for _, key := range tx.c.space.uniqueEntries(tx.part, keys, body) {
			tx.claims = append(tx.claims, claim{key: key, id: ch.id})
		}
	}
	return nil
}

// text returns the body of a document from the store, or from an earlier write of this
// transaction.
func (tx *Tx) text(ch *change) ([]byte, error) {
	if ch.value != nil {
		return ch.value[ch.head:], nil
	}
	item, err := tx.load(ch)
	return item.Body, err
}

func (w *writer) unique(claims []claim) {
	for _, c := range claims {
		if c.id == "" {
			_ = w.Delete(c.key, nil)
		} else {
			_ = w.Set(c.key, []byte(c.id), nil)
		}
	}
}

// forgetUnique adds the removal of an expired document's entries to a batch. It skips entries
// that another document has taken.
func (c *Container) forgetUnique(batch *pebble.Batch, p *Partition, rec *record) error {
	keys := c.Definition().Unique
	if len(keys) == 0 {
		return nil
	}
	for _, key := range c.space.uniqueEntries(p, keys, rec.body) {
		holder, err := c.storedHolder(key)
		if err != nil {
			return err
		}
		if holder == string(rec.id) {
			_ = batch.Delete(key, nil)
		}
	}
	return nil
}
