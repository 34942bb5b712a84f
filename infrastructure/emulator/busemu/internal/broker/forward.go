package broker

import (
	"cmp"
	"slices"
)

// maxForward limits how many swapped out messages are read back and forwarded at a time, so
// that a large backlog does not fill memory.
const maxForward = 1000

// forward removes the ready messages of a forwarding holder from its lists and sends them on.
// Their records remain until the other entity has stored them. Called with h.mu.
func (h *holder) forward(later *callbacks) {
	if messages, more := h.takeReady(); len(messages) > 0 {
		to := h.config.forwardTo
		later.call(func() { h.sendOn(messages, to, more) })
	}
}

// takeReady removes the messages to forward. more reports that others are still swapped out.
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
			break // keeps the order
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

// sendOn forwards messages of h, and then those that were swapped out.
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

// notForwarded dead-letters a message that the other entity refused. In a dead-letter queue
// the message stays until the next forward. Called with h.mu.
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
