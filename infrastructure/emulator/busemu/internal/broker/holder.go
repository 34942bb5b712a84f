package broker

import (
	"container/heap"
	"sync"
	"sync/atomic"
)

// holder stores the messages of a queue, a subscription or a dead-letter queue and serves its
// receivers. A topic has one for scheduled messages.
type holder struct {
	inlet      upstream
	deadLetter *holder // nil for a dead-letter queue and for a topic
	lastUsed   atomic.Int64

	mu     sync.Mutex // guards the fields below
	config holderConfig
	gone   bool // the entity was deleted or the broker closed
	stock
	line
	waiters  waiters
	toServe  []*session // held sessions that got messages since the last serve
	alarm    alarm
	armed    int64 // time for which alarm is set
	counters Counters
}

// upstream is the inlet of a holder, as far as the holder calls it.
type upstream interface {
	// activate enqueues scheduled messages that are due.
	activate(due []*message, later *callbacks)
	// takeOver accepts messages that another entity forwards.
	takeOver(from *holder, messages []*message, later *callbacks)
	// at finds the inlet of another entity, for forwarding.
	at(path string) (upstream, error)
	// partitionOfMessage returns the partition of a message.
	partitionOfMessage(m *message) Partition
}

// holderConfig has those properties of an entity that its holder applies.
type holderConfig struct {
	lockDuration      int64
	maxDelivery       uint32
	deadLetterExpired bool
	receiveDisabled   bool
	forwardTo         string
}

func newHolder(s site, id uint32, in upstream, sessions bool, c holderConfig) *holder {
	h := &holder{inlet: in, config: c, stock: newStock(s, id, sessions), line: line{receivers: make(map[*Receiver]struct{})}}
	h.alarm.fire = h.fire
	return h
}

// add stores messages that have just become durable, and delivers them as far as credit
// allows.
func (h *holder) add(messages []*message, later *callbacks) {
	now := h.e.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		discard(h.e, messages, later)
		return
	}
	h.counters.Enqueued += int64(len(messages))
	h.put(messages, now, later)
	h.forward(later)
	h.serve(now, later)
	h.swapOut(messages)
	h.arm()
}

// swapOut swaps messages out, if memory is short. A holder that forwards keeps its messages in
// memory, because they leave it at once and those that are refused would be read again.
func (h *holder) swapOut(messages []*message) {
	if h.config.forwardTo == "" {
		h.stock.swapOut(messages)
	}
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

// enqueue makes m ready, or deferred if it was deferred before. It offers a session without
// receiver to the waiters; serve delivers to receivers.
func (h *holder) enqueue(m *message, now int64, later *callbacks) {
	if m.expired(now) && !h.keepsExpired {
		h.expire(m, later)
		return
	}
	h.place(m)
	if s := m.session; s != nil && !m.deferred {
		h.offerSession(s, now, later)
		if s.receiver != nil && !s.toServe {
			s.toServe = true
			h.toServe = append(h.toServe, s)
		}
	}
}

func (h *holder) touch() { h.lastUsed.Store(h.e.now()) }

func (h *holder) read() Counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counters
}
