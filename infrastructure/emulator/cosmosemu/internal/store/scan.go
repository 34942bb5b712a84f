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
)

// Scope says which documents a scan visits. All conditions must hold.
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

// Scan calls fn for the live documents of a scope in the order of insertion,
// until it returns false. The body is valid during the call only. All of one
// scan comes from one state of the container.
//
// A logical partition and named documents are found by index; only a scope with
// neither passes over other documents.
func (c *Container) Scan(scope Scope, fn func(number uint64, body []byte) (more bool)) error {
	v := c.store.viewAt(scope.At)
	defer v.release()
	s := &scanner{c: c, scope: scope, now: c.store.now().UnixMilli(), ttl: c.ttl(), fn: fn}
	if scope.Part != nil {
		s.window = epk.Point(scope.Part.EPK)
	}
	if scope.Items == nil && scope.Part == nil {
		return s.all(v)
	}
	from, to := c.space.span()
	index, err := v.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("scan: %w", asCorruption(err))
	}
	return errors.Join(s.indexed(index), asCorruption(index.Close()))
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

// all visits the documents of the container, or those of the ranges that overlap
// the scope's window.
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
		segments = append(segments, r.segments()...)
	}
	slices.Sort(segments)
	segments = slices.Compact(segments)
	if len(segments) == 0 {
		return nil
	}
	h, err := s.c.openHistory(v, segments, fromNumber(0, s.scope.After+1), kindDocument)
	if err != nil {
		return err
	}
	more := true
	for ; h.valid() && more && err == nil; h.next() {
		more, err = s.visit(h.value())
	}
	return errors.Join(err, h.close())
}

// visit offers a document record, if it is in scope.
func (s *scanner) visit(value []byte) (more bool, err error) {
	rec, err := decodeRecord(value)
	if err != nil {
		return false, err
	}
	if s.ttl.expired(rec.stamp, s.now) ||
		s.scope.Window != nil && !s.scope.Window.Contains(rec.epk) ||
		s.scope.Part != nil && (!s.window.Contains(rec.epk) || !bytes.HasPrefix(rec.encoded, s.scope.Part.encoded)) {
		return true, nil
	}
	return s.fn(rec.created.number(), rec.body), nil
}

// indexed visits the documents that an index names, in the order of insertion.
func (s *scanner) indexed(index *pebble.Iterator) error {
	var found []position
	var err error
	if s.scope.Items == nil {
		found, err = s.inPartition(index)
	} else {
		for i := range s.scope.Items {
			if found, err = s.named(found, index, &s.scope.Items[i]); err != nil {
				break
			}
		}
	}
	if err := errors.Join(err, asCorruption(index.Error())); err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b position) int { return cmp.Compare(a.number(), b.number()) })
	for _, created := range slices.Compact(found) {
		if created.number() <= s.scope.After {
			continue
		}
		if s.key, err = s.c.find(index, s.key, created); err != nil {
			return err
		}
		if more, err := s.visit(index.Value()); err != nil || !more {
			return err
		}
	}
	return nil
}

// inPartition returns the places of the documents of a logical partition.
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

// named appends the places of the documents a reference means.
func (s *scanner) named(found []position, index *pebble.Iterator, ref *ItemRef) ([]position, error) {
	if ref.Part != nil {
		s.key = s.c.space.item(s.key[:0], ref.Part, ref.ID)
		if !index.SeekGE(s.key) || !bytes.Equal(index.Key(), s.key) {
			return found, nil
		}
		p, err := decodePointer(index.Value())
		return append(found, p.created), err
	}
	s.key = s.c.space.id(s.key[:0], ref.ID)
	for index.SeekGE(s.key); index.Valid() && bytes.HasPrefix(index.Key(), s.key); index.Next() {
		value := index.Value()
		if len(value) != idEntrySize {
			return nil, fmt.Errorf("%w: id index entry of %d bytes", ErrCorrupt, len(value))
		}
		if int(binary.BigEndian.Uint32(value[positionSize:])) == len(ref.ID) { // else a longer id with a zero byte in it
			found = append(found, decodePosition(value))
		}
	}
	return found, nil
}
