package broker

import (
	"fmt"
)

// deadLetterReason has the values of the properties DeadLetterReason and
// DeadLetterErrorDescription.
type deadLetterReason struct{ reason, description string }

func tooManyDeliveries(n uint16) deadLetterReason {
	return deadLetterReason{"MaxDeliveryCountExceeded", fmt.Sprintf("Message could not be consumed after %d delivery attempts.", n)}
}

func timeToLiveExpired() deadLetterReason {
	return deadLetterReason{"TTLExpiredException", "The message expired and was dead lettered."}
}

func noSession() deadLetterReason {
	return deadLetterReason{"Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null."}
}

// addTo returns a copy of over with the reason set.
func (r deadLetterReason) addTo(over *overlay, source string) *overlay {
	var o overlay
	if over != nil {
		o = *over
	}
	o.source, o.reason, o.description = source, r.reason, r.description
	return &o
}

// moveToDeadLetter moves m to the dead-letter queue. m keeps its partition, its delivery count
// and its enqueued time.
func (h *holder) moveToDeadLetter(m *message, why deadLetterReason, done func(error), later *callbacks) {
	h.counters.DeadLettered++
	recorded := m.recorded
	h.forget(m)
	h.e.submit(&move{
		completion: completion{holder: h, message: m, recorded: recorded, done: done},
		to:         h.deadLetter,
		moved: &message{
			body: m.body, sequence: h.deadLetter.nextSequence(partitionOf(m.sequence)), firstSeq: m.origin(),
			enqueuedAt: m.enqueuedAt, expiresAt: m.expiresAt, attempts: m.attempts,
			overlay: why.addTo(m.overlay, h.path),
		},
	}, later)
}

// move takes a message from one holder to another. Both copies share the body.
type move struct {
	completion
	to    *holder
	moved *message
}

func (o *move) write(w *writer) {
	o.moved.body.retain(1)
	w.putMessage(&o.to.numbering, o.moved)
	o.completion.write(w)
}

func (o *move) publish(later *callbacks) { o.to.add([]*message{o.moved}, later) }

// expire removes a message whose time to live has passed, or dead-letters it if the entity is
// configured so.
func (h *holder) expire(m *message, later *callbacks) {
	h.counters.Expired++
	if h.config.deadLetterExpired && h.deadLetter != nil {
		h.moveToDeadLetter(m, timeToLiveExpired(), nil, later)
		return
	}
	h.remove(m, nil, later)
}

// expireMessages expires messages that are not locked. A locked one is checked when its lock
// ends.
func (h *holder) expireMessages(now int64, later *callbacks) {
	for len(h.expiry) > 0 && h.expiry[0].expiresAt <= now {
		m := h.expiry[0]
		if m.place == inReady || m.place == inDeferred {
			h.expire(m, later)
			continue
		}
		h.expiry.popFirst()
	}
}

// discard releases the payloads of messages that arrive at a deleted holder.
func discard(e *engine, messages []*message, later *callbacks) {
	e.submit(&disposal{messages}, later)
}

// disposal releases messages whose records were deleted with their holder.
type disposal struct{ messages []*message }

func (o *disposal) write(w *writer) {
	for _, m := range o.messages {
		m.body.release(w)
	}
}

func (o *disposal) publish(*callbacks) {}

func (o *disposal) finish(error) {}
