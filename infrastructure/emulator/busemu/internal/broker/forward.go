package broker

import (
	"cmp"
	"slices"
)

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
	in, err := h.inlet.at(to)
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

// notForwarded dead-letters a message that its target refused. In a dead-letter queue
// it stays until the next one comes. Called with h.mu.
func (h *holder) notForwarded(m *message, err error, later *callbacks) {
	if h.gone {
		return
	}
	if h.deadLetter == nil {
		h.enqueue(m, h.e.now(), later)
		return
	}
	h.moveToDeadLetter(m, deadLetterReason{"ForwardingFailed", err.Error()}, nil, later)
}
