package busemu

import (
	"errors"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// errPreSettled marks a delivery that needs no disposition.
var errPreSettled = errors.New("settled by the sender")

// handleEvent receives the broker's answer to a message.
func (l *incomingLink) handleEvent(e event) {
	l.s.c.inflight -= e.n
	l.finish(e.id, e.err)
}

// finishNow answers the last delivery.
func (l *incomingLink) finishNow(err error) {
	if l.settled {
		err = errPreSettled
	}
	l.finish(l.deliveryID, err)
}

// finish answers a delivery.
func (l *incomingLink) finish(id uint32, err error) {
	switch {
	case errors.Is(err, errPreSettled) || l.over() || l.targetEnded:
	case err == nil:
		l.s.c.settlements.add(l.s, amqp.RoleReceiver, l, id, amqp.StateAccepted)
	default:
		l.s.c.settlements.flush()
		l.s.send(&amqp.Disposition{Role: amqp.RoleReceiver, First: id, Settled: true, State: answerTo(err)})
	}
	l.finished()
}

// finishAs answers the last delivery with a transactional state.
func (l *incomingLink) finishAs(state []byte) {
	if !l.settled && !l.over() && !l.targetEnded {
		l.s.c.settlements.add(l.s, amqp.RoleReceiver, l, l.deliveryID, state)
	}
	l.finished()
}

func (l *incomingLink) finished() {
	l.inflight--
	switch {
	case l.over():
	case l.detachGot:
		l.finishLeaving()
	default:
		l.topUp()
	}
}

// detach ends the link because of an error of the peer.
func (l *incomingLink) detach(e *amqp.Error) {
	l.sendDetach(e)
	l.release()
}

// ended handles that the broker has closed the sender.
func (l *incomingLink) ended(err error) {
	if l.over() {
		return
	}
	l.targetEnded = true
	l.s.c.detachLater(err, func() { l.detach(wireError(err)) })
}

// handleDetach answers the peer's Detach when all of its messages are answered.
func (l *incomingLink) handleDetach(*amqp.Detach) { l.finishLeaving() }

func (l *incomingLink) finishLeaving() {
	if l.detachGot && l.inflight == 0 && !l.over() {
		l.answerDetach()
		l.release()
	}
}

func (l *incomingLink) release() {
	l.dropPartial()
	if l.target != nil {
		l.target.Close()
	}
	if l.coordinator {
		l.endTransactions()
	}
	if l.cbs() {
		l.s.c.cbs.detachRequests()
	}
}

func (l *incomingLink) cbs() bool { return l.request == requestNode(&l.s.c.cbs) }
