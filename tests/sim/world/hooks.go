package world

import (
	"slices"
	"sync"
)

// hooks are fault hooks that stay installed across restarts of their emulator. C is the call, F the
// fault.
type hooks[C, F any] struct {
	mu   sync.Mutex // guards list
	list []*func(*C) *F
}

// add installs a hook. The first hook that returns a fault wins.
func (h *hooks[C, F]) add(hook func(*C) *F) (remove func()) {
	entry := &hook
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(slices.Clone(h.list), entry)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = slices.DeleteFunc(slices.Clone(h.list), func(e *func(*C) *F) bool { return e == entry })
	}
}

func (h *hooks[C, F]) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = nil
}

// ask returns the fault for a call, or nil.
func (h *hooks[C, F]) ask(call *C) *F {
	h.mu.Lock()
	list := h.list
	h.mu.Unlock()
	for _, hook := range list {
		if f := (*hook)(call); f != nil {
			return f
		}
	}
	return nil
}
