package busemu

import (
	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// giveBack returns the messages that were prefetched and not sent.
func (l *outgoingLink) giveBack() {
	for i := range l.pending {
		if d := &l.pending[i]; d.LockToken != (broker.LockToken{}) && l.source != nil {
			l.source.Settle(d.LockToken, broker.Outcome{Kind: broker.Release}, func(error) {})
		}
	}
	clear(l.pending)
	l.pending = l.pending[:0]
}

// ended handles that the broker has closed the receiver.
func (l *outgoingLink) ended(err error) {
	if l.over() {
		return
	}
	l.s.c.detachLater(err, func() { l.detach(wireError(err)) })
}

// detach detaches the link and releases its messages.
func (l *outgoingLink) detach(e *amqp.Error) {
	if l.over() {
		return
	}
	l.sendDetach(e)
	l.release()
}

func (l *outgoingLink) release() {
	if l.cancel != nil {
		l.cancel()
		l.cancel = nil
	}
	if l.opened && l.node.kind == nodeCBS {
		l.s.c.cbs.detachReplies()
	}
	for id, d := range l.s.unsettled {
		if d.link == l {
			delete(l.s.unsettled, id)
		}
	}
	l.giveBack()
	if l.source != nil {
		l.source.Close()
	}
	if l.subscription != nil {
		l.s.c.ns.leave(l.subscription)
		l.subscription = nil
	}
	for _, reply := range l.replies {
		l.s.c.owed.Add(-int64(len(reply)))
	}
	l.replies = nil
}
