package broker

import (
	"container/heap"
	"sync"
	"sync/atomic"
)

// holder keeps the messages of a queue, a subscription or a dead-letter queue. A topic
// has one too, for messages that wait for their scheduled time.
type holder struct {
	b          *Broker
	id         uint32
	path       string
	inlet      *inlet  // accounts for the payloads; takes back scheduled messages
	deadLetter *holder // nil for a dead-letter queue and for a topic

	// sequences are the last numbers given out, one for each partition.
	sequences []atomic.Int64
	lastUsed  atomic.Int64

	mu       sync.Mutex
	config   holderConfig
	gone     bool                // the entity was deleted or the broker closed
	sessions map[string]*session // nil without sessions
	// mostSessions is the most that sessions has held.
	mostSessions int
	index        index
	ready        []readyList  // without sessions, one for each partition
	turn         int          // partition to serve next
	locked       lockedList   // without sessions, by lockedUntil
	available    sessionList  // nobody holds them and they have ready messages; oldest first
	held         sessionList  // by lockedUntil
	waiters      []*waiter    // for the next session, oldest first
	patience     int64        // the first of the waiters gives up then, or later
	expiry       expiryHeap   // ready and deferred messages, some locked ones
	scheduled    scheduleHeap //
	deferred     int          // messages set aside, locked ones not counted
	inFlight     int          // locked messages
	fed          []*session   // held ones that were given messages since serve
	receivers    map[*Receiver]struct{}
	hungry       []*Receiver // with credit, without session; next first
	browsing     []*Receiver
	alarm        alarm
	armed        int64 // what alarm is set to
	counters     Counters
}

// holderConfig is the part of an entity's properties that its holder obeys.
type holderConfig struct {
	lockDuration      int64
	maxDelivery       uint32
	deadLetterExpired bool
	receiveDisabled   bool
	forwardTo         string
	keepsExpired      bool // dead-letter queues
}

func (b *Broker) newHolder(id uint32, path string, in *inlet, sessions bool, c holderConfig) *holder {
	h := &holder{
		b: b, id: id, path: path, inlet: in, config: c, receivers: make(map[*Receiver]struct{}),
		sequences: make([]atomic.Int64, in.partitions), ready: make([]readyList, in.partitions),
	}
	h.index.tables = make([]table, in.partitions)
	if b.store != nil {
		h.index.memory = &b.inMemory
	}
	if sessions {
		h.sessions = make(map[string]*session)
	}
	h.alarm.fire = h.fire
	return h
}

// add puts messages that have just become durable where they belong and delivers
// what can be delivered.
func (h *holder) add(messages []*message, later *callbacks) {
	now := h.b.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		h.discard(messages, later)
		return
	}
	h.counters.Enqueued += int64(len(messages))
	h.put(messages, now, later)
	h.forward(later)
	h.serve(now, later)
	h.swapOut(messages)
	h.arm()
}

// put is add without the delivery.
func (h *holder) put(messages []*message, now int64, later *callbacks) {
	for _, m := range messages {
		h.index.set(m)
		if h.sessions != nil {
			m.session = h.session(m.body.session)
			m.session.messages++
		}
		if m.scheduledAt != 0 {
			m.place = inScheduled
			heap.Push(&h.scheduled, m)
			continue
		}
		h.enqueue(m, now, later)
	}
}

// enqueue makes m ready, or deferred if that is what it was. Sessions without a
// receiver are offered; receivers are served by serve.
func (h *holder) enqueue(m *message, now int64, later *callbacks) {
	if m.expired(now) && !h.config.keepsExpired {
		h.expire(m, later)
		return
	}
	h.place(m)
	if s := m.session; s != nil && !m.deferred {
		h.offerSession(s, now, later)
		if s.receiver != nil && !s.fed {
			s.fed = true
			h.fed = append(h.fed, s)
		}
	}
}

// place puts m where it waits.
func (h *holder) place(m *message) {
	if m.expiresAt != 0 && m.expiryIndex == 0 && !h.config.keepsExpired {
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

// readyList is where m is when it is ready.
func (h *holder) readyList(m *message) *readyList {
	if m.session != nil {
		return &m.session.ready
	}
	return &h.ready[partitionOf(m.sequence)]
}

// forget takes m, wherever it is, out of the holder.
func (h *holder) forget(m *message) {
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

// withdraw takes m out of the list it is in; it stays in the index.
func (h *holder) withdraw(m *message) {
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

// find returns the message that token locks.
func (h *holder) find(token LockToken) *message {
	sequence, nonce := token.open()
	if m := h.index.get(sequence); nonce != 0 && m != nil && m.nonce == nonce && m.place == inLocked {
		return m
	}
	return nil
}
