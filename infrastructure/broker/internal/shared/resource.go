// Package shared opens a connection or link once for concurrent callers:
//
//	[none] --Get--> [opening] --success--> [open] --Drop: it has ended or failed--> [none]
//	                    |
//	                    +--failure, which all waiting callers get--> [none]
package shared

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrClosed is returned after Resource.Close.
var ErrClosed = errors.New("closed")

// Resource is a connection or link that concurrent callers share. The first caller that needs it opens
// it. A Resource is safe for concurrent use.
type Resource[T any] struct {
	open  func(ctx context.Context) (*T, error)
	close func(ctx context.Context, t *T) error

	current  atomic.Pointer[T]
	turn     chan struct{} // capacity 1; a mutex for opening, whose wait a context can end
	attempts atomic.Uint64 // to open it
	failure  error         // of the last attempt, or nil; guarded by turn
	closed   bool          // guarded by turn
}

// New returns a resource that is opened and closed by these functions.
func New[T any](open func(ctx context.Context) (*T, error), end func(ctx context.Context, t *T) error) *Resource[T] {
	return &Resource[T]{open: open, close: end, turn: make(chan struct{}, 1)}
}

// Get returns the open resource, or opens it. A caller that waited while another one opened it shares
// the result, unless the other caller's context was canceled.
func (r *Resource[T]) Get(ctx context.Context) (*T, error) {
	if t := r.current.Load(); t != nil {
		return t, nil
	}
	attempts := r.attempts.Load()
	if err := r.lock(ctx); err != nil {
		return nil, err
	}
	defer r.unlock()
	if t := r.current.Load(); t != nil {
		return t, nil
	}
	if r.closed {
		return nil, ErrClosed
	}
	if r.failure != nil && r.attempts.Load() != attempts {
		return nil, r.failure
	}
	t, err := r.open(ctx)
	switch {
	case err == nil:
		r.current.Store(t)
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, err // not shared, because the broker may be fine
	}
	r.failure = err
	r.attempts.Add(1)
	return t, err
}

// GetLive calls Get after it has dropped a resource that has ended. It may return a new resource that
// has ended already. The caller then gets an error from it, and reattempts after its own backoff.
func (r *Resource[T]) GetLive(ctx context.Context, ended func(t *T) bool) (*T, error) {
	if t := r.current.Load(); t != nil && ended(t) {
		r.Drop(ctx, t)
	}
	return r.Get(ctx)
}

// Drop closes t if it is the current resource, so that the next Get opens a new one.
func (r *Resource[T]) Drop(ctx context.Context, t *T) {
	if t != nil && r.current.CompareAndSwap(t, nil) {
		_ = r.close(ctx, t) // not used any more, whether closed or not
	}
}

// Reset closes the current resource, so that the next Get opens a new one.
func (r *Resource[T]) Reset(ctx context.Context) { r.Drop(ctx, r.current.Load()) }

// Current returns the open resource, or nil.
func (r *Resource[T]) Current() *T { return r.current.Load() }

// Close closes the resource permanently. If ctx ends while another caller opens it, it stays open.
func (r *Resource[T]) Close(ctx context.Context) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	r.closed = true
	if t := r.current.Swap(nil); t != nil {
		return r.close(ctx, t)
	}
	return nil
}

func (r *Resource[T]) lock(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Resource[T]) unlock() { <-r.turn }
