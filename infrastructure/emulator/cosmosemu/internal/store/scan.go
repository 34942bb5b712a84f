package store

import (
	"bytes"
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
// A logical partition and ids are found by index; only a scope with neither
// passes over other documents.
func (c *Container) Scan(scope Scope, fn func(number uint64, body []byte) (more bool)) error {
	v := c.store.view()
	defer v.release()
	lower := c.space.prefix(nil, kindDocument)
	docs, err := v.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)})
	if err != nil {
		return fmt.Errorf("scan: %w", asCorruption(err))
	}
	s := &scanner{c: c, scope: scope, docs: docs, now: c.store.now().UnixMilli(), ttl: c.ttl(), fn: fn}
	if scope.Part != nil {
		s.window = epk.Point(scope.Part.EPK)
	}
	switch {
	case scope.Items != nil:
		err = s.byName()
	case scope.Part != nil:
		err = s.byPartition()
	default:
		err = s.all()
	}
	return errors.Join(err, asCorruption(docs.Close()))
}

type scanner struct {
	c      *Container
	scope  Scope
	docs   *pebble.Iterator
	window epk.Range // of scope.Part
	now    int64     // Unix ms
	ttl    lifetime
	fn     func(uint64, []byte) bool
	key    []byte // scratch
}

func (s *scanner) all() error {
	s.key = s.c.space.document(s.key[:0], s.scope.After+1)
	for s.docs.SeekGE(s.key); s.docs.Valid(); s.docs.Next() {
		if more, err := s.visit(); err != nil || !more {
			return err
		}
	}
	return s.docs.Error()
}

// visit offers the document the iterator stands on, if it is in scope.
func (s *scanner) visit() (more bool, err error) {
	rec, err := decodeRecord(s.docs.Value())
	if err != nil {
		return false, err
	}
	if s.ttl.expired(rec.stamp, s.now) ||
		s.scope.Window != nil && !s.scope.Window.Contains(rec.epk) ||
		s.scope.Part != nil && (!s.window.Contains(rec.epk) || !bytes.HasPrefix(rec.encoded, s.scope.Part.encoded)) {
		return true, nil
	}
	return s.fn(rec.document, rec.body), nil
}

// byPartition visits the documents of a logical partition.
func (s *scanner) byPartition() error {
	lower := append(s.c.space.prefix(nil, kindItem), s.scope.Part.EPK...)
	return s.indexed(func(index *pebble.Iterator) (numbers []uint64, err error) {
		end := after(lower)
		for index.SeekGE(lower); index.Valid() && bytes.Compare(index.Key(), end) < 0; index.Next() {
			p, err := decodePointer(index.Value())
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, p.document)
		}
		return numbers, index.Error()
	}, lower)
}

// byName visits the documents named in the scope.
func (s *scanner) byName() error {
	from, _ := s.c.space.span()
	return s.indexed(func(index *pebble.Iterator) (numbers []uint64, err error) {
		for i := range s.scope.Items {
			if numbers, err = s.named(numbers, index, &s.scope.Items[i]); err != nil {
				return nil, err
			}
		}
		return numbers, index.Error()
	}, from)
}

// named appends the numbers of the documents a reference means.
func (s *scanner) named(numbers []uint64, index *pebble.Iterator, ref *ItemRef) ([]uint64, error) {
	if ref.Part != nil {
		s.key = s.c.space.item(s.key[:0], ref.Part, ref.ID)
		if !index.SeekGE(s.key) || !bytes.Equal(index.Key(), s.key) {
			return numbers, nil
		}
		p, err := decodePointer(index.Value())
		return append(numbers, p.document), err
	}
	s.key = s.c.space.id(s.key[:0], ref.ID)
	for index.SeekGE(s.key); index.Valid() && bytes.HasPrefix(index.Key(), s.key); index.Next() {
		if len(index.Value()) != idEntrySize {
			return nil, fmt.Errorf("%w: id index entry of %d bytes", ErrCorrupt, len(index.Value()))
		}
		number, length := binary.BigEndian.Uint64(index.Value()), binary.BigEndian.Uint32(index.Value()[8:])
		if int(length) == len(ref.ID) { // else a longer id with a zero byte in it
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// indexed collects document numbers from an index, in the state the documents
// are read in, and visits them in order.
func (s *scanner) indexed(collect func(*pebble.Iterator) ([]uint64, error), lower []byte) error {
	index, err := s.docs.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)}})
	if err != nil {
		return fmt.Errorf("scan: %w", asCorruption(err))
	}
	numbers, err := collect(index)
	if err := errors.Join(err, index.Close()); err != nil {
		return asCorruption(err)
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		if n <= s.scope.After {
			continue
		}
		s.key = s.c.space.document(s.key[:0], n)
		if !s.docs.SeekGE(s.key) || !bytes.Equal(s.docs.Key(), s.key) {
			if err := s.docs.Error(); err != nil {
				return asCorruption(err)
			}
			return fmt.Errorf("%w: document %d is indexed but not in the store", ErrCorrupt, n)
		}
		if more, err := s.visit(); err != nil || !more {
			return err
		}
	}
	return nil
}
