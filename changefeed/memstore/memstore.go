// Package memstore is an in-memory changefeed.LeaseStore, for tests and for a single
// process that may start from the beginning after a restart.
//
// A Store is safe for concurrent use and starts no goroutines. Records are copied in and
// out.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"feedbox/changefeed"
)

var _ changefeed.LeaseStore = (*Store)(nil)

// Kind is one operation of a LeaseStore.
type Kind string

// The operations.
const (
	List    Kind = "list"
	Read    Kind = "read"
	Create  Kind = "create"
	Replace Kind = "replace"
	Delete  Kind = "delete"
)

// Op is one call, as passed to a hook.
type Op struct {
	Kind Kind
	ID   string // the prefix of a List
}

// Options tune a Store. The zero value is a store that never fails.
type Options struct {
	// Before may delay a call or fail it before it takes effect.
	Before func(ctx context.Context, op Op) error
	// After may fail a call that took effect, which simulates a lost reply.
	After func(ctx context.Context, op Op) error
}

// Store holds records by id.
type Store struct {
	opts Options

	mu      sync.Mutex // guards the fields below
	records map[string]changefeed.Record
	etags   uint64
}

// New returns an empty store; nil options are the defaults.
func New(options *Options) *Store {
	s := &Store{records: map[string]changefeed.Record{}}
	if options != nil {
		s.opts = *options
	}
	return s
}

// List implements changefeed.LeaseStore.
func (s *Store) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	return do(ctx, s, Op{Kind: List, ID: prefix}, func() (found []changefeed.Record, err error) {
		for _, id := range slices.Sorted(maps.Keys(s.records)) {
			if strings.HasPrefix(id, prefix) {
				found = append(found, clone(s.records[id]))
			}
		}
		return found, nil
	})
}

// Read implements changefeed.LeaseStore.
func (s *Store) Read(ctx context.Context, id string) (changefeed.Record, error) {
	return do(ctx, s, Op{Kind: Read, ID: id}, func() (changefeed.Record, error) {
		r, found := s.records[id]
		if !found {
			return r, changefeed.ErrNotFound
		}
		return clone(r), nil
	})
}

// Create implements changefeed.LeaseStore.
func (s *Store) Create(ctx context.Context, record changefeed.Record) (string, error) {
	return do(ctx, s, Op{Kind: Create, ID: record.ID}, func() (etag string, err error) {
		if _, taken := s.records[record.ID]; taken {
			return "", changefeed.ErrExists
		}
		return s.put(record), nil
	})
}

// Replace implements changefeed.LeaseStore.
func (s *Store) Replace(ctx context.Context, record changefeed.Record) (string, error) {
	return do(ctx, s, Op{Kind: Replace, ID: record.ID}, func() (etag string, err error) {
		if err := s.match(record.ID, record.ETag); err != nil {
			return "", err
		}
		return s.put(record), nil
	})
}

// Delete implements changefeed.LeaseStore.
func (s *Store) Delete(ctx context.Context, id, etag string) error {
	_, err := do(ctx, s, Op{Kind: Delete, ID: id}, func() (none struct{}, err error) {
		if err := s.match(id, etag); err != nil {
			return none, err
		}
		delete(s.records, id)
		return none, nil
	})
	return err
}

// do runs one operation between the hooks.
func do[T any](ctx context.Context, s *Store, op Op, apply func() (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if s.opts.Before != nil {
		if err := s.opts.Before(ctx, op); err != nil {
			return result, err
		}
	}
	s.mu.Lock()
	result, err = apply()
	s.mu.Unlock()
	if err != nil {
		return result, fmt.Errorf("%s %s: %w", op.Kind, op.ID, err)
	}
	if s.opts.After != nil {
		err = s.opts.After(ctx, op)
	}
	return result, err
}

// match compares ETags. Called with mu.
func (s *Store) match(id, etag string) error {
	r, ok := s.records[id]
	switch {
	case !ok:
		return changefeed.ErrNotFound
	case r.ETag != etag:
		return changefeed.ErrETagMismatch
	}
	return nil
}

// put stores a copy under a new ETag. Called with mu.
func (s *Store) put(r changefeed.Record) string {
	s.etags++
	r = clone(r)
	r.ETag = `"` + strconv.FormatUint(s.etags, 16) + `"`
	s.records[r.ID] = r
	return r.ETag
}

func clone(r changefeed.Record) changefeed.Record {
	r.Body = bytes.Clone(r.Body)
	return r
}
