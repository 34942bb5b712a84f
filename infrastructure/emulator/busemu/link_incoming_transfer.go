package busemu

import (
	"bytes"
	"slices"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// handleTransfer receives a frame of a delivery. A delivery may span several frames, be
// settled by the sender, and be aborted.
//
// It refuses transfers beyond the credit and other message formats than 0 and 0x80013700.
//
// Source: AMQP 1.0 part 2, section 2.6.14.
func (l *incomingLink) handleTransfer(p *amqp.Transfer, payload []byte) {
	if l.over() || l.targetEnded || l.detachGot {
		return
	}
	if l.attach != nil { // without credit
		l.s.end(condWindowViolation, "transfer on a link that is not attached yet")
		return
	}
	if !l.more {
		if !p.DeliveryID.Set {
			l.detach(&amqp.Error{Condition: condInvalidField, Description: "first transfer of a delivery without a delivery-id"})
			return
		}
		if l.credit == 0 {
			l.detach(&amqp.Error{Condition: condTransferLimit, Description: "transfer without link-credit"})
			return
		}
		l.deliveryID, l.format, l.settled, l.txn = p.DeliveryID.Value, p.MessageFormat.Or(0), false, nil
		if p.State != nil {
			state, err := amqp.DecodeState(p.State)
			if err != nil {
				l.s.end(condDecodeError, err.Error())
				return
			}
			if state.Code == amqp.CodeTransactionalState {
				l.txn = bytes.Clone(state.TxnID)
			}
		}
	} else if p.DeliveryID.Set && p.DeliveryID.Value != l.deliveryID {
		l.detach(&amqp.Error{Condition: condInvalidField, Description: "transfer of another delivery before the last one was complete"})
		return
	}
	l.settled = l.settled || p.Settled
	if p.Aborted {
		l.dropPartial()
		l.more, l.oversize = false, 0
		return
	}
	if l.oversize > 0 || len(l.partial)+len(payload) > max(l.maxSize, l.info.MaxBatchSize) {
		l.oversize += len(l.partial) + len(payload) // too large: from here on only counted
		l.dropPartial()
		payload = nil
	}
	if l.more || p.More {
		l.partial = append(l.partial, payload...)
		l.s.c.partial += len(payload)
		if l.s.c.partial > partialMax {
			l.s.c.fail(condResourceLimit, "too many incomplete messages on one connection")
			return
		}
	}
	l.more = p.More
	if p.More {
		return
	}
	message := l.partial
	if message == nil {
		message = append([]byte(nil), payload...) // because the frame's buffer is reused
	} else {
		l.s.c.partial -= len(l.partial)
		l.partial = nil
	}
	l.deliveryCount++
	l.idleness.done++
	l.credit--
	if size := l.oversize; size > 0 {
		l.oversize = 0
		l.inflight++
		l.finishNow(messageTooLarge(size, l.maxSize))
		return
	}
	l.accept(message)
}

func (l *incomingLink) dropPartial() {
	l.s.c.partial -= len(l.partial)
	l.partial = nil
}

// accept handles a complete message.
func (l *incomingLink) accept(message []byte) {
	l.inflight++
	if l.coordinator {
		l.coordinate(message)
		return
	}
	if l.request != nil && l.txn != nil {
		l.finishNow(&broker.Error{Condition: broker.NotImplemented, Description: "Requests in a transaction are not supported by this emulator."})
		return
	}
	if l.request != nil && l.s.c.owed.Load() > 2*owedMax {
		l.finishNow(errTooManyReplies)
		return
	}
	if l.request != nil {
		l.finishNow(nil)
		l.request.handleRequest(l.s, message)
		return
	}
	batch, err := readMessages(message, l.format, &l.info)
	if err != nil {
		l.finishNow(err)
		return
	}
	if _, ok := l.s.c.ns.pay(&l.s.c.ns.in, len(batch), len(message)); !ok {
		l.finishNow(throttled())
		return
	}
	if l.txn != nil {
		l.sendIn(l.txn, batch, len(message))
		return
	}
	id, settled, size := l.deliveryID, l.settled, len(message)
	c := l.s.c
	c.inflight += size
	if c.undisturbed(&l.linkBase) {
		l.sendOn(batch, id, size, settled, nil)
		return
	}
	c.perform(work{
		link: &l.linkBase,
		call: func() *Call {
			return &Call{Operation: OpSend, Entity: l.path, Link: l.name, Messages: len(batch), Sessions: sessionsOf(batch)}
		},
		serve:  func() { l.sendOn(batch, id, size, settled, nil) },
		silent: func(done func()) { l.sendOn(batch, id, size, true, done) },
		skip:   func() { l.handleEvent(event{id: id, n: size, err: errPreSettled}) },
		refuse: func(err error) { l.handleEvent(event{id: id, n: size, err: err}) },
		settle: func(o Outcome) { l.handleEvent(event{id: id, n: size, err: o}) },
		detach: func(e *Error) { l.detach(wire(e)) },
	})
}

// sessionsOf lists the sessions of messages, each once.
func sessionsOf(batch []broker.Message) []string {
	var ids []string
	for i := range batch {
		if m := &batch[i]; m.HasSession && !slices.Contains(ids, m.SessionID) {
			ids = append(ids, m.SessionID)
		}
	}
	return ids
}

// sendOn passes messages to the broker and answers when they are durable, unless the delivery
// is settled. done, if any, is then called on the loop.
func (l *incomingLink) sendOn(batch []broker.Message, id uint32, size int, settled bool, done func()) {
	c := l.s.c
	l.target.Send(batch, func(err error) {
		if settled {
			if err != nil {
				c.log.Debug("pre-settled message refused", "link", l.name, "error", err)
			}
			err = errPreSettled
		}
		c.post(event{link: l, id: id, n: size, err: err})
		if done != nil {
			c.post(event{fn: done})
		}
	})
}
