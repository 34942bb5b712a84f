// Package hooks keeps the functions that inject faults into calls to an emulator. Both emulators
// use it, so that faults work the same in both: hooks are asked in the order they were added, and
// the first that returns a fault decides.
package hooks

import (
	"slices"
	"sync"
	"sync/atomic"
)

// List contains the hooks of an emulator. C describes a call, F a fault. The zero value is ready
// to use. It is safe for concurrent use.
type List[C, F any] struct {
	mu    sync.Mutex                     // held to change hooks
	hooks atomic.Pointer[[]*func(*C) *F] // nil if there are none; never changed in place
}

// Add adds a hook after the others. remove removes it.
func (l *List[C, F]) Add(hook func(*C) *F) (remove func()) {
	l.change(func(hooks []*func(*C) *F) []*func(*C) *F { return append(hooks, &hook) })
	return func() {
		l.change(func(hooks []*func(*C) *F) []*func(*C) *F {
			return slices.DeleteFunc(hooks, func(h *func(*C) *F) bool { return h == &hook })
		})
	}
}

// Clear removes all hooks.
func (l *List[C, F]) Clear() { l.change(func([]*func(*C) *F) []*func(*C) *F { return nil }) }

func (l *List[C, F]) change(change func([]*func(*C) *F) []*func(*C) *F) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var hooks []*func(*C) *F
	if now := l.hooks.Load(); now != nil {
		hooks = slices.Clone(*now)
	}
	if hooks = change(hooks); len(hooks) == 0 {
		l.hooks.Store(nil)
		return
	}
	l.hooks.Store(&hooks)
}

// Empty reports whether there are no hooks, so that callers need not build a call.
func (l *List[C, F]) Empty() bool { return l.hooks.Load() == nil }

// Ask returns the fault of a call, nil for none.
func (l *List[C, F]) Ask(call *C) *F {
	hooks := l.hooks.Load()
	if hooks == nil {
		return nil
	}
	for _, hook := range *hooks {
		if f := (*hook)(call); f != nil {
			return f
		}
	}
	return nil
}

// Always returns a hook that gives every call the same fault.
func Always[C, F any](fault F) func(*C) *F { return func(*C) *F { return &fault } }

// Times returns a hook that gives the next n calls the same fault, and later ones none.
func Times[C, F any](n int, fault F) func(*C) *F {
	var left atomic.Int64
	left.Store(int64(n))
	return func(*C) *F {
		if left.Add(-1) < 0 {
			return nil
		}
		return &fault
	}
}

// If returns a hook that passes calls on to hook if matches returns true.
func If[C, F any](matches func(*C) bool, hook func(*C) *F) func(*C) *F {
	return func(call *C) *F {
		if !matches(call) {
			return nil
		}
		return hook(call)
	}
}
