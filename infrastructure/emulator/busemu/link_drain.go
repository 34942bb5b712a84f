package busemu

import "feedbox/infrastructure/emulator/busemu/amqp"

// Drain: send the available messages, then advance the delivery count by the unused credit and
// report it. The JavaScript SDK closes a link that gets no answer within 200 ms.
//
// Source: AMQP 1.0 part 2, section 2.6.7.

// continueDrain asks the broker to drop the unused credit. The broker has only a part of the
// peer's credit at a time, so this may take several rounds.
func (l *outgoingLink) continueDrain() {
	if !l.drain && l.leaving == nil || l.draining || l.exhausted || l.over() {
		return
	}
	if l.source == nil {
		l.exhausted = true
		l.finishDrain()
		return
	}
	l.draining = true
	c := l.s.c
	l.source.Drain(func(count uint32) {
		c.post(event{fn: func() { l.drained(count) }})
	})
}

// drained receives the broker's answer; all deliveries before it have arrived.
func (l *outgoingLink) drained(count uint32) {
	l.draining = false
	l.exhausted = count != l.seen || l.credit <= uint32(len(l.pending)) || l.leaving != nil
	l.seen, l.granted = count, 0
	l.finishDrain()
	l.finishLeaving()
	if !l.exhausted {
		l.grant()
		l.continueDrain()
	}
}

// finishDrain answers the peer when nothing is left to send.
func (l *outgoingLink) finishDrain() {
	if !l.drain || !l.exhausted || l.draining || l.over() || l.leaving != nil {
		return
	}
	if l.credit > 0 && (len(l.pending) > 0 || len(l.replies) > 0) {
		return // sendSome calls finishDrain again
	}
	l.deliveryCount += l.credit
	l.credit = 0
	l.drain, l.exhausted = false, false
	l.sendLinkFlow(true)
	l.grant()
}

// handleDetach answers the peer's Detach. Messages that a receive-and-delete receiver took
// from the entity are sent first; otherwise they would be lost.
func (l *outgoingLink) handleDetach(p *amqp.Detach) {
	if l.attach == nil && l.preSettle && l.source != nil && p.Error == nil && l.leaving == nil {
		l.leaving = &amqp.Detach{}
		l.exhausted = false
		l.continueDrain()
		l.finishLeaving()
		return
	}
	l.answerDetach()
	l.release()
}

// finishLeaving completes a Detach that waited for the last messages.
func (l *outgoingLink) finishLeaving() {
	if l.leaving == nil || l.draining || l.over() || !l.exhausted {
		return
	}
	if len(l.pending) > 0 && l.credit > 0 {
		return
	}
	l.answerDetach()
	l.release()
}
