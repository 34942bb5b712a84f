package world

import (
	"fmt"
	"slices"
	"sync"
)

// part returns a process by name.
func (w *World) part(name string) *process {
	p, ok := w.parts[name]
	if !ok {
		panic(fmt.Sprintf("world: there is no part %q; there are %v, %s and %s", name, w.Processes(), PartCosmos, PartBus))
	}
	return p
}

// interfaceOf returns the network interface of a part, nil while it does not run.
func (w *World) interfaceOf(name string) *nic {
	switch name {
	case PartCosmos:
		return w.cosmos.current()
	case PartBus:
		return w.bus.current()
	default:
		n, _ := w.part(name).current()
		return n
	}
}

// Start starts parts that do not run.
func (w *World) Start(names ...string) {
	for _, name := range names {
		var err error
		switch name {
		case PartCosmos:
			err = w.cosmos.start(w)
		case PartBus:
			err = w.bus.start(w)
		default:
			w.part(name).start()
		}
		if err != nil {
			w.harness("start %s: %v", name, err)
		}
	}
}

// StartAll starts every part that does not run, the emulators first.
func (w *World) StartAll() {
	w.Start(PartCosmos, PartBus)
	w.Start(w.Processes()...)
}

// Crash ends a part at once and reports whether it ran. An emulator that keeps its data in memory
// does not crash.
func (w *World) Crash(name string) bool {
	var ran bool
	switch name {
	case PartCosmos:
		ran = w.cosmos.crash(w)
	case PartBus:
		ran = w.bus.crash(w)
	default:
		ran = w.part(name).crash()
	}
	w.trace.Add(name, "CRASH (ran: %t)", ran)
	return ran
}

// Stop signals a process to end, like SIGTERM, and reports whether it ran. The process drains while
// virtual time passes. Start may be called before it has ended.
func (w *World) Stop(name string) bool {
	ran := w.part(name).stop()
	w.trace.Add(name, "STOP (ran: %t)", ran)
	return ran
}

// Freeze blocks a part's network until Thaw and reports whether it ran.
func (w *World) Freeze(name string) bool {
	n := w.interfaceOf(name)
	if n == nil {
		return false
	}
	w.trace.Add(name, "FREEZE")
	n.freeze()
	return true
}

// FreezeParking freezes a consumer when it sends its next request to park an event and close a gate, which
// reaches the store after Thaw. It reports whether the consumer ran.
func (w *World) FreezeParking(name string) bool {
	n := w.interfaceOf(name)
	if n == nil {
		return false
	}
	w.trace.Add(name, "FREEZE at the next gate it closes")
	n.setTrap([]byte(`[{"operationType":"Create","resourceBody":{"id":"$gate","partitionKey":"consumer/` + consumerName))
	return true
}

// Thaw ends Freeze and FreezeParking. It does nothing for a part that does not run or is not frozen.
func (w *World) Thaw(name string) {
	if n := w.interfaceOf(name); n != nil {
		w.trace.Add(name, "THAW")
		n.setTrap(nil)
		n.thaw()
	}
}

// Reset breaks the open connections of a part and reports whether it ran.
func (w *World) Reset(name string) bool {
	n := w.interfaceOf(name)
	if n == nil {
		return false
	}
	w.trace.Add(name, "RESET")
	n.reset()
	return true
}

// Running reports whether a process runs, and the name of its incarnation, which is the owner in
// the leases of a relay.
func (w *World) Running(name string) (instance string, ok bool) {
	n, instance := w.part(name).current()
	return instance, n != nil
}

// Heal ends every fault: it removes hooks, thaws frozen parts, starts parts that do not run, and
// restores status and quota.
func (w *World) Heal() {
	w.trace.Add("world", "HEAL")
	w.cosmos.hooks.clear()
	w.bus.hooks.clear()
	w.received.setSlow(0)
	w.received.moods.setDown(false)
	for _, name := range append(w.Processes(), PartCosmos, PartBus) {
		if n := w.interfaceOf(name); n != nil {
			n.setTrap(nil)
			n.thaw()
		}
	}
	w.Start(PartCosmos, PartBus)
	w.bus.restore(w)
	if !w.closed {
		w.Start(w.Processes()...)
	}
	w.resumeAll()
}

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
