package broker

import (
	"container/heap"
	"math/bits"
)

// With storage, new messages are swapped out while those in memory exceed the cache. The index
// keeps a few bits of each and the ready list a byte or two. The rest is read back when the
// message is delivered, peeked or due. A message is swapped out only when its records are up
// to date: when it has just become durable, or when a change of it has. A message that
// returned after a delivery stays in memory, because no more of those exist than were locked
// at a time.

// crowded reports whether the messages in memory exceed the cache.
func (h *stock) crowded() bool {
	return h.index.memory != nil && h.index.memory.Load() > h.e.options.CacheBytes
}

// swapOut swaps out those of the given messages that are not locked, if memory is short.
func (h *stock) swapOut(messages []*message) {
	if !h.crowded() {
		return
	}
	for _, m := range messages {
		if m.unsaved == 0 {
			h.swapOutOne(m)
		}
	}
}

func (h *stock) swapOutOne(m *message) {
	wake := m.expiresAt
	switch m.place {
	case inReady:
		if !h.readyList(m).swapOut(m) {
			return
		}
	case inDeferred:
	case inScheduled:
		wake = m.scheduledAt
		heap.Remove(&h.scheduled, int(m.heapIndex)-1)
	case nowhere, inLocked:
		return
	}
	if m.expiryIndex > 0 {
		heap.Remove(&h.expiry, int(m.expiryIndex)-1)
	}
	if h.keepsExpired && m.scheduledAt == 0 {
		wake = 0
	}
	h.index.swapOut(m, wake)
	m.place, m.session = nowhere, nil
}

// admit adds a message that was read back.
func (h *stock) admit(m *message) {
	h.index.swapIn(m)
	if h.sessions != nil {
		m.session = h.session(m.body.session)
	}
	if m.scheduledAt != 0 {
		m.place = inScheduled
		heap.Push(&h.scheduled, m)
		return
	}
	if m.expiresAt != 0 && !h.keepsExpired {
		heap.Push(&h.expiry, m)
	}
	if m.deferred {
		m.place = inDeferred
		return
	}
	h.readyList(m).link(m)
}

// lookUp returns a message at the given place, read back if necessary; nil if there is none.
func (h *stock) lookUp(sequence int64, at place) *message {
	if h.index.swapped(sequence) == at {
		in := h.readBack()
		defer in.close()
		return in.swapIn(sequence)
	}
	if m := h.index.get(sequence); m != nil && m.place == at {
		return m
	}
	return nil
}

// nextReady returns the next message of l to deliver, read back if necessary; nil if there is
// none or the store has failed.
func (h *stock) nextReady(l *readyList, in *readBack) *message {
	for l.swapped.first != 0 {
		if m := l.first(); m != nil && m.sequence < l.swapped.first {
			return m
		}
		sequence := l.swapped.pop()
		if h.index.swapped(sequence) != inReady {
			continue // it was removed otherwise
		}
		return in.swapIn(sequence)
	}
	return l.first()
}

// maxWake limits how many due messages are read back at a time.
const maxWake = 4096

// wakeSwapped reads back messages that expire or are due now. more reports that others remain.
func (h *stock) wakeSwapped(now int64) (more bool) {
	woken := 0
	for due := h.index.wakes.next(); due != 0 && due <= now; due = h.index.wakes.next() {
		if woken >= maxWake {
			return true
		}
		n, ok := h.wakeChunk(h.index.wakes[0], now)
		if !ok {
			return false
		}
		woken += n
	}
	return false
}

func (h *stock) wakeChunk(c *chunk, now int64) (woken int, ok bool) {
	next := int64(0)
	in := h.readBack()
	defer in.close()
	for rest := c.swapped; rest != 0; rest &= rest - 1 {
		m := in.fetch(c.first + int64(bits.TrailingZeros64(rest)))
		if m == nil {
			h.index.wakes.set(c, 0)
			return 0, false
		}
		at := m.expiresAt
		if m.scheduledAt != 0 {
			at = m.scheduledAt
		}
		switch {
		case at == 0:
		case at <= now:
			h.admit(m)
			woken++
		case next == 0 || at < next:
			next = at
		}
	}
	h.index.wakes.set(c, next)
	return woken, true
}
