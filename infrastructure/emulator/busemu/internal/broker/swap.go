package broker

import (
	"container/heap"
	"math/bits"
)

// With storage, messages that wait are swapped out once those in memory take more than
// the cache has room for: the index keeps a few bits of each, its ready list a byte or
// two, and the rest is read back when the message is delivered, looked at or due. A
// message is swapped out only where its records are as it is itself: when it has just
// become durable, or when a change of it has. One that was delivered and came back stays
// in memory.

// crowded reports whether messages in memory take more than they should.
func (h *stock) crowded() bool {
	return h.index.memory != nil && h.index.memory.Load() > h.e.options.CacheBytes
}

// swapOut swaps out those of a holder's messages that still wait, if memory is short.
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

// admit puts a message that was read back where it waits.
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

// lookUp returns a message wherever it is, read back if it is swapped out and waits at
// the given place; nil if there is none.
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

// nextReady returns the message of l to deliver next, read back if need be; nil if there is
// none or the store has failed.
func (h *stock) nextReady(l *readyList, in *readBack) *message {
	for l.swapped.first != 0 {
		if m := l.first(); m != nil && m.sequence < l.swapped.first {
			return m
		}
		sequence := l.swapped.pop()
		if h.index.swapped(sequence) != inReady {
			continue // it has gone another way
		}
		return in.swapIn(sequence)
	}
	return l.first()
}

// maxWake is how many messages are read back at a time because they are due.
const maxWake = 4096

// wakeSwapped reads the messages back that expire or are due now. It reports whether
// there are more.
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
