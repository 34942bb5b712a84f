// Package shared is how connections and links are used by many at a time, and opened by one:
//
//	[none] --Get--> [opening] --done--> [open] --Drop: it has ended, or is of no use any more--> [none]
//	                    |
//	                    +--failed, and so do those who waited--> [none]
package shared

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrClosed is the failure of what was closed for good.
var ErrClosed = errors.New("closed")

// Shared is something that many use: a connection, a link. The first who needs it opens
// it. Safe for concurrent use.
type Shared[T any] struct {
	open  func(ctx context.Context) (*T, error)
	close func(ctx context.Context, t *T) error

	current atomic.Pointer[T]
	turn    chan struct{} // capacity 1: held while it is opened, which takes a while
	tries   atomic.Uint64 // how often that was tried
	failure error         // of the last try, nil if it was opened; guarded by turn, as is closed
	closed  bool
}

// NewShared returns one that is opened and closed by these functions.
func NewShared[T any](open func(ctx context.Context) (*T, error), end func(ctx context.Context, t *T) error) *Shared[T] {
	return &Shared[T]{open: open, close: end, turn: make(chan struct{}, 1)}
}

// Get returns it, opened if need be. Who waits for another's try to open it shares the
// result, unless the other gave up.
func (s *Shared[T]) Get(ctx context.Context) (*T, error) {
	if t := s.current.Load(); t != nil {
		return t, nil
	}
	tries := s.tries.Load()
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if t := s.current.Load(); t != nil {
		return t, nil
	}
	if s.closed {
		return nil, ErrClosed
	}
	if s.failure != nil && s.tries.Load() != tries {
		return nil, s.failure
	}
	t, err := s.open(ctx)
	switch {
	case err == nil:
		s.current.Store(t)
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, err // says nothing about the broker
	}
	s.failure = err
	s.tries.Add(1)
	return t, err
}

// GetLive is Get, which opens another first if it has ended. One that is new and has ended is
// returned: its use says so, and whoever tries again waits before.
func (s *Shared[T]) GetLive(ctx context.Context, ended func(t *T) bool) (*T, error) {
	if t := s.current.Load(); t != nil && ended(t) {
		s.Drop(ctx, t)
	}
	return s.Get(ctx)
}

// Drop closes t if it is the present one, so that the next Get opens another.
func (s *Shared[T]) Drop(ctx context.Context, t *T) {
	if t != nil && s.current.CompareAndSwap(t, nil) {
		_ = s.close(ctx, t) // it is given up in any case
	}
}

// Reset closes what is open, so that the next Get opens another.
func (s *Shared[T]) Reset(ctx context.Context) { s.Drop(ctx, s.current.Load()) }

// Current is what is open, nil if nothing is.
func (s *Shared[T]) Current() *T { return s.current.Load() }

// Close closes it for good. If ctx ends while it is being opened, it stays open.
func (s *Shared[T]) Close(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	s.closed = true
	if t := s.current.Swap(nil); t != nil {
		return s.close(ctx, t)
	}
	return nil
}

func (s *Shared[T]) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Shared[T]) unlock() { <-s.turn }
