package broker

import (
	"container/heap"
	"sync"
	"sync/atomic"
)

// holder keeps the messages of a queue, a subscription or a dead-letter queue, and serves
// them. A topic has one too, for messages that wait for their scheduled time.
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
	fed      []*session // held ones that were given messages since serve
	alarm    alarm
	armed    int64 // what alarm is set to
	counters Counters
}

// upstream is the inlet of a holder.
type upstream interface {
	// activate takes back scheduled messages whose time has come.
	activate(due []*message, later *callbacks)
	// takeOver accepts messages that another entity forwards.
	takeOver(from *holder, messages []*message, later *callbacks)
	// at finds the inlet of another entity, to forward to.
	at(path string) (upstream, error)
	// partitionOfMessage is where a message is.
	partitionOfMessage(m *message) Partition
}

// holderConfig is the part of an entity's properties that its holder obeys.
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

// add puts messages that have just become durable where they belong and delivers
// what can be delivered.
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
	if h.config.forwardTo == "" {
		h.swapOut(messages)
	}
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
	if m.expired(now) && !h.keepsExpired {
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

func (h *holder) touch() { h.lastUsed.Store(h.e.now()) }

func (h *holder) read() Counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counters
}
