package broker

import (
	"container/heap"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// site is the part of a holder that it shares with its entity. Immutable.
type site struct {
	e            *engine
	path         string
	ledger       *ledger // the inlet's
	partitions   int
	keepsExpired bool // dead-letter queues and topics
}

// stock has the messages of a holder. Each is in the index, and in the list, heap or session
// of its place. A stock moves messages; the holder decides when. Guarded by the holder's mu.
type stock struct {
	site
	numbering
	sessionTable
	index     index
	ready     []readyList // without sessions, one for each partition
	turn      int         // partition to serve next
	locked    lockedList  // without sessions, by lockedUntil
	expiry    expiryHeap  // ready and deferred messages, some locked ones
	scheduled scheduleHeap
	deferred  int // deferred messages without those that are locked
	inFlight  int // locked messages
}

func newStock(s site, id uint32, sessions bool) stock {
	h := stock{site: s, numbering: numbering{id, make([]atomic.Int64, s.partitions)}, ready: make([]readyList, s.partitions)}
	h.index.tables = make([]table, s.partitions)
	if s.e.store != nil {
		h.index.memory = &s.e.inMemory
	}
	if sessions {
		h.sessions = make(map[string]*session)
	}
	return h
}

// kept returns a site whose messages stay when they expire.
func kept(s site) site {
	s.keepsExpired = true
	return s
}

// place puts m into its list: ready or deferred.
func (h *stock) place(m *message) {
	if m.expiresAt != 0 && m.expiryIndex == 0 && !h.keepsExpired {
		heap.Push(&h.expiry, m)
	}
	switch {
	case m.deferred:
		m.place = inDeferred
		h.deferred++
	default:
		h.readyList(m).push(m)
	}
}

// readyList returns the ready list for m.
func (h *stock) readyList(m *message) *readyList {
	if m.session != nil {
		return &m.session.ready
	}
	return &h.ready[partitionOf(m.sequence)]
}

// forget removes m from the holder, whatever its place.
func (h *stock) forget(m *message) {
	h.withdraw(m)
	h.index.remove(m)
	if m.expiryIndex > 0 {
		heap.Remove(&h.expiry, int(m.expiryIndex)-1)
	}
	if s := m.session; s != nil {
		s.messages--
		h.dropIdle(s)
	}
}

// withdraw removes m from its list; it stays in the index.
func (h *stock) withdraw(m *message) {
	switch m.place {
	case inReady:
		l := h.readyList(m)
		l.remove(m)
		if m.session != nil && l.n == 0 {
			h.available.removeIf(m.session)
		}
	case inLocked:
		h.inFlight--
		m.nonce = 0
		if m.session != nil {
			m.session.locked.remove(m)
		} else {
			h.locked.remove(m)
		}
	case inDeferred:
		h.deferred--
	case inScheduled:
		heap.Remove(&h.scheduled, int(m.heapIndex)-1)
	case nowhere:
	}
	m.place = nowhere
}

// find returns the message with this lock token, nil if there is none.
func (h *stock) find(token LockToken) *message {
	sequence, nonce := token.open()
	if m := h.index.get(sequence); nonce != 0 && m != nil && m.nonce == nonce && m.place == inLocked {
		return m
	}
	return nil
}

// waiting counts the ready messages of a holder without sessions.
func (h *stock) waiting() (n int) {
	for i := range h.ready {
		n += h.ready[i].n
	}
	return n
}

// listFor returns the ready list with the next message: that of the session, or without
// sessions that of a partition. Partitions with messages take turns.
func (h *stock) listFor(s *session) *readyList {
	if s != nil {
		return &s.ready
	}
	l := &h.ready[h.turn]
	for range h.ready {
		l = &h.ready[h.turn]
		if h.turn++; h.turn == len(h.ready) {
			h.turn = 0
		}
		if l.n > 0 {
			break
		}
	}
	return l
}

// takeDue removes the scheduled messages that are due.
func (h *stock) takeDue(now int64) (due []*message) {
	for h.scheduled.Len() > 0 && h.scheduled.messageHeap[0].scheduledAt <= now {
		m := h.scheduled.messageHeap[0]
		h.forget(m)
		due = append(due, m)
	}
	return due
}

// waitingForTime counts the scheduled messages.
func (h *stock) waitingForTime() int { return h.scheduled.Len() + h.index.scheduled }

// restore adds a loaded message. It expires and activates nothing, because the alarm does that
// once the broker runs.
func (h *stock) restore(m *message) {
	if m.scheduledAt != 0 {
		m.place = inScheduled
		heap.Push(&h.scheduled, m)
		return
	}
	h.place(m)
	if s := m.session; s != nil && !m.deferred && s.list == nil {
		h.available.append(s)
	}
}

// lock locks m, which has no place, and returns it as its receiver sees it. until is the end
// of the lock; in a session the session's lock applies.
func (h *stock) lock(m *message, until int64) Delivery {
	m.place = inLocked
	for m.nonce = 0; m.nonce == 0; {
		m.nonce = rand.Uint64()
	}
	h.inFlight++
	d := m.delivery()
	d.LockToken = m.token()
	if s := m.session; s != nil {
		s.locked.insert(m) // all zero, so this is the order of delivery
		d.LockedUntil = time.Unix(0, s.lockedUntil)
		return d
	}
	m.lockedUntil = until
	h.locked.insert(m)
	d.LockedUntil = time.Unix(0, m.lockedUntil)
	return d
}
