package broker

import (
	"cmp"
	"slices"
	"strings"
)

// maxHops is how often a message may be forwarded, as the service has it.
const maxHops = 4

// forwardName is the entity that ForwardTo names: a name, or the URL of an entity of
// this namespace.
func forwardName(to string) string {
	if _, rest, ok := strings.Cut(to, "://"); ok {
		_, to, _ = strings.Cut(rest, "/")
	}
	return strings.Trim(to, "/")
}

// forwardable checks that the targets of an entity's forwarding exist. An entity may
// forward to itself, as the service has it: its messages go round until they have been
// forwarded too often.
func (b *Broker) forwardable(targets ...string) error {
	for _, to := range targets {
		if to == "" {
			continue
		}
		n, ok := b.find(forwardName(to))
		if !ok || n.subscription != nil || n.suffix != "" {
			return errorf(ArgumentError, "The target entity '%s' of the forwarding does not exist. Messages are forwarded to queues and topics.", to)
		}
	}
	return nil
}

// maxForward is how many messages that are swapped out are forwarded at a time.
const maxForward = 1000

// forward takes the ready messages of a holder that forwards out of its lists. They
// stay in the store until their new entity has them there. Called with h.mu.
func (h *holder) forward(later *callbacks) {
	if messages, more := h.takeReady(); len(messages) > 0 {
		to := h.config.forwardTo
		later.call(func() { h.sendOn(messages, to, more) })
	}
}

// takeReady is forward without the sending; more says that some are still swapped out.
func (h *holder) takeReady() (messages []*message, more bool) {
	if h.config.forwardTo == "" || h.gone {
		return nil, false
	}
	var swapped []int64
	for sequence, m := range h.index.from(0) {
		switch {
		case m != nil && m.place == inReady:
			messages = append(messages, m)
		case m == nil && h.index.swapped(sequence) == inReady:
			if more = len(swapped) == maxForward; !more {
				swapped = append(swapped, sequence)
			}
		}
		if more {
			break // in order
		}
	}
	in := h.readBack()
	defer in.close()
	for _, sequence := range swapped {
		if m := in.swapIn(sequence); m != nil {
			messages = append(messages, m)
		}
	}
	for _, m := range messages {
		h.withdraw(m)
	}
	slices.SortFunc(messages, func(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) })
	return messages, more
}

// sendOn sends messages of h to another entity, and then those that were swapped out.
func (h *holder) sendOn(messages []*message, to string, more bool) {
	h.sendOnSome(messages, to)
	for more {
		h.mu.Lock()
		messages, more = h.takeReady()
		to = h.config.forwardTo
		h.mu.Unlock()
		if len(messages) > 0 {
			h.sendOnSome(messages, to)
		}
	}
}

func (h *holder) sendOnSome(messages []*message, to string) {
	var later callbacks
	defer later.run()
	in, err := h.b.inletAt(to)
	if err == nil {
		in.takeOver(h, messages, &later)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		h.notForwarded(m, err, &later)
	}
}

// takeOver accepts messages that another entity forwards. Each is checked by itself:
// one that is refused goes to the dead-letter queue of where it came from.
func (in *inlet) takeOver(from *holder, messages []*message, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	o := &intake{inlet: in, at: in.b.now(), from: from, parts: make([]part, len(in.targets), len(in.targets)+1)}
	if in.history != nil {
		in.history.forget(o.at)
	}
	from.mu.Lock()
	if from.gone {
		from.mu.Unlock()
		return
	}
	for _, m := range messages {
		in.takeOverOne(from, m, o, later)
	}
	from.mu.Unlock() // publish may lock the holder of an entity that forwards back
	if in.history != nil {
		in.history.note(o.at, len(o.hashes))
	}
	if len(o.removed) > 0 {
		in.b.submit(o, later)
		in.armHistory()
	}
}

func (in *inlet) takeOverOne(from *holder, m *message, o *intake, later *callbacks) {
	again := Message{
		Payload: m.body.payload, MessageID: m.body.id, SessionID: m.body.session,
		HasSession: m.body.hasSession, PartitionKey: m.body.partition,
	}
	err := in.check([]Message{again})
	if m.body.hops >= maxHops {
		err = errorf(NotAllowed, "The message was forwarded %d times already.", m.body.hops)
	}
	if err != nil {
		in.counters.Refused++
		from.notForwarded(m, err, later)
		return
	}
	in.counters.Accepted++
	fresh := true
	if in.history != nil && again.MessageID != "" {
		hash := in.hash(&again)
		if fresh = in.history.add(hash); fresh {
			o.hashes = append(o.hashes, hash)
		} else {
			in.counters.Duplicates++
		}
	}
	if fresh {
		b := m.body.unshared()
		b.owner, b.hops = in, m.body.hops+1
		o.last = in.rest.nextSequence(in.partition([]Message{again}))
		o.route(b, o.last, m.origin(), m.overlay)
	}
	o.removed = append(o.removed, m)
	o.recorded = append(o.recorded, m.recorded)
	from.forget(m)
}

// notForwarded dead-letters a message that its target refused. In a dead-letter queue
// it stays until the next one comes. Called with h.mu.
func (h *holder) notForwarded(m *message, err error, later *callbacks) {
	if h.gone {
		return
	}
	if h.deadLetter == nil {
		h.enqueue(m, h.b.now(), later)
		return
	}
	h.moveToDeadLetter(m, deadLetterReason{"ForwardingFailed", err.Error()}, nil, later)
}
