package busemu

import (
	"math"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// handleFlow applies the peer's credit (section 2.6.7). It may come before the attach is
// answered.
func (l *outgoingLink) handleFlow(p *amqp.Flow) {
	if p.LinkCredit.Set {
		// The peer sends no count before it has seen our attach: our first count applies.
		l.credit = p.DeliveryCount.Or(0) + p.LinkCredit.Value - l.deliveryCount
		if int32(l.credit) < 0 && l.credit > math.MaxInt32 {
			l.credit = 0 // the peer has not seen everything that was sent
		}
	}
	l.drain = p.Drain
	if l.attach != nil || l.leaving != nil {
		return
	}
	l.exhausted = false
	l.grant()
	l.continueDrain()
	if p.Echo && !l.drain {
		l.sendLinkFlow(false)
	}
	l.enqueue()
}

// grant passes credit on to the broker.
func (l *outgoingLink) grant() {
	if l.source == nil || l.draining || l.leaving != nil || l.over() {
		return
	}
	window := uint32(max(1, min(prefetchMax, prefetchBytes/max(l.average, 1))))
	want := uint32(0)
	if waiting := uint32(len(l.pending)); waiting < window && l.credit > waiting {
		want = min(window-waiting, l.credit-waiting)
	}
	if want == l.granted || want > l.granted && l.granted > window/2 {
		return
	}
	l.granted = want
	l.source.SetCredit(l.seen, want)
}

// deliver is called by the broker with its locks held.
func (l *outgoingLink) deliver(batch []broker.Delivery) {
	c := l.s.c
	c.mu.Lock()
	l.arrivals = append(l.arrivals, batch...)
	if !l.arrived {
		l.arrived = true
		c.inbox = append(c.inbox, event{fn: l.takeArrivals})
	}
	c.mu.Unlock()
	c.signal()
}

func (l *outgoingLink) handleArrivals() {
	c := l.s.c
	c.mu.Lock()
	n := len(l.arrivals)
	if len(l.pending) == 0 {
		l.pending, l.arrivals = l.arrivals, l.pending[:0]
	} else {
		l.pending = append(l.pending, l.arrivals...)
		clear(l.arrivals)
		l.arrivals = l.arrivals[:0]
	}
	l.arrived = false
	c.mu.Unlock()
	l.seen += uint32(n)
	l.granted -= min(l.granted, uint32(n))
	for i := range l.pending[len(l.pending)-n:] {
		l.average += (len(l.pending[len(l.pending)-n+i].Payload) - l.average) / 8
	}
	if l.over() {
		l.giveBack()
		return
	}
	l.enqueue()
}

// enqueue queues the link if it has something to send.
func (l *outgoingLink) enqueue() {
	if l.queued || l.held || l.credit == 0 || l.attach != nil || l.over() || len(l.pending) == 0 && len(l.replies) == 0 {
		return
	}
	l.queued = true
	l.s.ready = append(l.s.ready, l)
	if !l.s.busy {
		l.s.busy = true
		l.s.c.busy = append(l.s.c.busy, l.s)
	}
}

// sendSome sends the messages of one turn.
func (l *outgoingLink) sendSome() {
	s := l.s
	sent := 0
turns:
	for sent < turn && l.credit > 0 && s.remoteIncomingWindow > 0 && !l.held && !l.over() && !s.c.outputFull() {
		switch {
		case len(l.replies) > 0:
			s.sendMessage(l, nil, true, l.replies[0])
			s.c.owed.Add(-int64(len(l.replies[0])))
			l.replies[0] = nil
			l.replies = l.replies[1:]
		case sent < len(l.pending) && l.afford(&l.pending[sent]) && l.mayDeliver():
			l.sendDelivery(&l.pending[sent])
			sent++
		default:
			break turns
		}
		l.deliveryCount++
		l.idleness.done++
		l.credit--
	}
	rest := copy(l.pending, l.pending[sent:])
	clear(l.pending[rest:])
	l.pending = l.pending[:rest]
	if l.over() {
		l.giveBack()
		return
	}
	l.grant()
	l.enqueue()
	l.finishDrain()
	l.finishLeaving()
}

func (l *outgoingLink) sendDelivery(d *broker.Delivery) {
	c := l.s.c
	var err error
	c.scratch, err = appendDelivery(c.scratch[:0], d, false)
	if err != nil { // it was checked on arrival
		c.log.Error("message not delivered: it does not decode", "entity", l.node.path, "sequence", d.SequenceNumber, "error", err)
		l.held = true
		c.post(event{fn: func() { l.detach(wireError(err)) }})
		return
	}
	var tag []byte // of a browser's delivery: its number
	if !l.browser {
		guid := amqp.UUID(d.LockToken).GUID()
		tag = guid[:]
	}
	id := l.s.sendMessage(l, tag, l.preSettle, c.scratch)
	if l.preSettle {
		return
	}
	l.s.unsettled[id] = &delivery{link: l, id: id, token: d.LockToken}
}

// sendMessage sends a message, in several frames if the peer's max-frame-size requires it, and
// returns its delivery id.
func (s *session) sendMessage(l *outgoingLink, tag []byte, settled bool, message []byte) uint32 {
	id := s.nextDeliveryID
	s.nextDeliveryID++
	if tag == nil {
		tag = []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
	}
	p := amqp.Transfer{
		Handle: l.handle, DeliveryID: amqp.Some(id), DeliveryTag: tag,
		MessageFormat: amqp.Some(uint32(0)), Settled: settled,
	}
	c := s.c
	room := int(c.peer.MaxFrameSize) - transferOverhead
	for first := true; first || len(message) > 0; first = false {
		part := message
		if p.More = len(part) > room; p.More {
			part = part[:room]
		}
		var mark int
		c.out, mark = amqp.BeginFrame(c.out, amqp.FrameAMQP, s.channel)
		c.out = append(p.Append(c.out), part...)
		c.out = amqp.EndFrame(c.out, mark)
		message = message[len(part):]
		p.DeliveryID, p.DeliveryTag, p.MessageFormat = amqp.Optional[uint32]{}, nil, amqp.Optional[uint32]{}
		s.nextOutgoingID++
		s.remoteIncomingWindow--
	}
	return id
}

// transferOverhead is an upper bound for the header of a transfer frame with a 16-byte tag.
const transferOverhead = 80

// sendLinkFlow sends the link's state, and reports a completed drain.
func (l *outgoingLink) sendLinkFlow(drained bool) {
	l.s.sendFlow(&amqp.Flow{
		Handle: amqp.Some(l.handle), DeliveryCount: amqp.Some(l.deliveryCount),
		LinkCredit: amqp.Some(l.credit), Drain: drained,
	})
}

// afford pays for the delivery of a message. Without credits the link pauses.
func (l *outgoingLink) afford(d *broker.Delivery) bool {
	wait, ok := l.s.c.ns.pay(&l.s.c.ns.out, 1, len(d.Payload))
	if !ok {
		l.held = true
		time.AfterFunc(wait, func() {
			l.s.c.post(event{fn: func() {
				l.held = false
				l.enqueue()
			}})
		})
	}
	return ok
}
