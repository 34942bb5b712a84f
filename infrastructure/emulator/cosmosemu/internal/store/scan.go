package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/internal/disk"
)

// Scope selects the documents of a scan. All conditions must hold.
type Scope struct {
	Window *epk.Range // effective partition keys, nil: all
	Part   *Partition // a logical partition, or all below a hierarchical prefix; nil: all
	Items  []ItemRef  // only these, nil: all
	After  uint64     // only documents inserted later than this number
	At     *Moment    // nil: now
}

// ItemRef names a document.
type ItemRef struct {
	ID   string
	Part *Partition // nil: in any logical partition
}

// Scan calls fn for the live documents of a scope in the order of insertion, until it
// returns false. The body is valid during the call only. A scan sees one state of the
// container.
//
// A logical partition and named documents are found by index. A scope with neither reads all
// documents of the ranges that overlap its window.
func (c *Container) Scan(scope Scope, fn func(number uint64, body []byte) (more bool)) error {
	v := c.store.viewAt(scope.At)
	defer v.release()
	s := &scanner{c: c, scope: scope, now: c.store.now().UnixMilli(), ttl: c.ttl(), fn: fn}
	if scope.Part != nil {
		s.window = epk.Point(scope.Part.EPK)
	}
	switch {
	case scope.Items != nil:
		return s.byName(v)
	case scope.Part == nil:
		return s.all(v)
	}
	from, to := c.space.span()
	index, err := v.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("scan: %w", disk.AsDamage(err))
	}
	return errors.Join(s.indexed(index), disk.AsDamage(index.Close()))
}

type scanner struct {
	c      *Container
	scope  Scope
	window epk.Range // of scope.Part
	now    int64     // Unix ms
	ttl    lifetime
	fn     func(uint64, []byte) bool
	key    []byte // scratch
}

// all visits the documents of the container, or of the ranges that overlap the scope's
// window.
func (s *scanner) all(v view) error {
	t := s.c.Topology()
	var segments []uint32
	for i := range t.Ranges {
		r := &t.Ranges[i]
		if s.scope.Window != nil {
			if _, overlaps := r.Bounds().Intersect(*s.scope.Window); !overlaps {
				continue
			}
		}
		segments = append(append(segments, r.segments()...), r.Restored...)
	}
	slices.Sort(segments)
	segments = slices.Compact(segments)
	if len(segments) == 0 {
		return nil
	}
	h, err := s.c.openHistory(v, segments, position{lsn: fromNumber(s.scope.After).lsn}, kindDocument)
	if err != nil {
		return err
	}
	more := true
	for ; h.valid() && more && err == nil; h.next() {
		more, err = s.visit(h.value())
	}
	return errors.Join(err, h.close())
}

// visit passes a document record to fn if it is in scope.
func (s *scanner) visit(value []byte) (more bool, err error) {
	rec, err := decodeRecord(value)
	if err != nil {
		return false, err
	}
	if s.ttl.expired(rec.stamp, s.now) || rec.created.number() <= s.scope.After ||
		s.scope.Window != nil && !s.scope.Window.Contains(rec.epk) ||
		s.scope.Part != nil && (!s.window.Contains(rec.epk) || !bytes.HasPrefix(rec.encoded, s.scope.Part.encoded)) {
		return true, nil
	}
	return s.fn(rec.created.number(), rec.body), nil
}

// indexed visits the documents of a logical partition.
func (s *scanner) indexed(index *pebble.Iterator) error {
	found, err := s.inPartition(index)
	if err := errors.Join(err, disk.AsDamage(index.Error())); err != nil {
		return err
	}
	// The index is in the order of ids, so the positions are sorted first.
	for _, created := range s.inOrder(found) {
		if s.key, err = s.c.find(index, s.key, created); err != nil {
			return err
		}
		if more, err := s.visit(index.Value()); err != nil || !more {
			return err
		}
	}
	return nil
}

// inOrder sorts positions by insertion, and drops repeats and those up to scope.After.
func (s *scanner) inOrder(found []position) []position {
	slices.SortFunc(found, func(a, b position) int { return cmp.Compare(a.number(), b.number()) })
	found = slices.Compact(found)
	return slices.DeleteFunc(found, func(p position) bool { return p.number() <= s.scope.After })
}

// inPartition returns the positions of the documents in a logical partition.
func (s *scanner) inPartition(index *pebble.Iterator) (found []position, err error) {
	lower := append(s.c.space.prefix(nil, kindItem), s.scope.Part.EPK...)
	end := after(lower)
	for index.SeekGE(lower); index.Valid() && bytes.Compare(index.Key(), end) < 0; index.Next() {
		p, err := decodePointer(index.Value())
		if err != nil {
			return nil, err
		}
		found = append(found, p.created)
	}
	return found, nil
}

// byName visits the documents named in the scope. It looks up single keys because that
// skips tables without the key, which an iterator cannot do.
func (s *scanner) byName(v view) error {
	if v.snapshot == nil { // all look-ups must see the same state
		snapshot := s.c.store.db.NewSnapshot()
		defer func() { _ = snapshot.Close() }() // Close fails only if called twice
		v.Reader = snapshot
	}
	var found []position
	var err error
	for i := range s.scope.Items {
		if found, err = s.named(found, v, &s.scope.Items[i]); err != nil {
			return err
		}
	}
	for _, created := range s.inOrder(found) {
		value, closer, err := v.Get(s.c.space.document(s.key[:0], created))
		if err != nil {
			return fmt.Errorf("read document: %w", disk.AsDamage(err))
		}
		more, err := s.visit(value)
		if err := errors.Join(err, closer.Close()); err != nil || !more {
			return err
		}
	}
	return nil
}

// named appends the positions of the documents that a reference names.
func (s *scanner) named(found []position, v view, ref *ItemRef) ([]position, error) {
	if ref.Part == nil {
		return s.withID(found, v, ref.ID)
	}
	s.key = s.c.space.item(s.key[:0], ref.Part, ref.ID)
	value, closer, err := v.Get(s.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read item index: %w", disk.AsDamage(err))
	}
	p, err := decodePointer(value)
	return append(found, p.created), errors.Join(err, closer.Close())
}

// withID appends the positions of the documents with an id, in any logical partition.
func (s *scanner) withID(found []position, v view, id string) ([]position, error) {
	lower := s.c.space.id(nil, id)
	index, err := v.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)})
	if err != nil {
		return nil, fmt.Errorf("read id index: %w", disk.AsDamage(err))
	}
	for index.First(); index.Valid() && err == nil; index.Next() {
		value := index.Value()
		switch {
		case len(value) != idEntrySize:
			err = fmt.Errorf("%w: id index entry of %d bytes", disk.ErrDamaged, len(value))
		case int(binary.BigEndian.Uint32(value[positionSize:])) == len(id): // otherwise it is a longer id that contains a zero byte
			found = append(found, decodePosition(value))
		}
	}
	return found, errors.Join(err, disk.AsDamage(index.Close()))
}
