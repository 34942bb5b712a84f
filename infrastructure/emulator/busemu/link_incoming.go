package busemu

import (
	"bytes"
	"errors"
	"slices"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// incomingCredit is how many messages a peer may have under way on one link.
const incomingCredit = 1000

// transferDestination is the property of a link that sends via its target to another
// entity.
const transferDestination = "com.microsoft:transfer-destination-address"

// incomingLink receives what a peer sends: to an entity, to $cbs or to
// $management.
type incomingLink struct {
	linkBase
	info    broker.EntityInfo // of an entity
	via     string            // the entity that the peer sends via to another; its messages go there at once
	target  *broker.Sender    // nil unless the node is an entity
	request requestNode       // nil if the node is an entity
	// coordinator says that the peer declares and discharges transactions here.
	coordinator bool
	maxSize     int

	deliveryCount uint32
	credit        uint32 // what the peer may still send
	inflight      uint32 // received, not answered

	more        bool // a delivery is incomplete
	deliveryID  uint32
	format      uint32
	settled     bool
	txn         []byte // of the delivery; nil: none
	partial     []byte
	oversize    int  // bytes so far of a message that is too large
	targetEnded bool // the broker has ended the sender; a Detach is to follow
}

// requestNode takes the requests sent to $cbs or $management.
type requestNode interface {
	// handleRequest answers in its own time, by session.reply.
	handleRequest(s *session, message []byte)
}

// attachIncoming attaches a sender of the peer (spec sections 3.2 and 3.3: settle
// modes are echoed, max-message-size is always told).
func (s *session) attachIncoming(b linkBase, p *amqp.Attach) {
	if p.Target == nil {
		b.refuse(p, &amqp.Error{Condition: condInvalidField, Description: "attach of a sender without a target"})
		return
	}
	n := parseAddress(p.Target.Address.Or(""))
	if p.Target.Coordinator {
		n = node{kind: nodeCoordinator}
	}
	l := &incomingLink{linkBase: b, maxSize: broker.StandardMaxMessageSize}
	l.path = n.path
	if destination, ok := p.Properties.String(transferDestination); ok && n.kind == nodeEntity {
		l.via, l.path = n.path, parseAddress(destination).path
	}
	s.links[b.handle] = l
	s.c.performAttach(l, p, n, func() {
		if err := l.open(n); err != nil {
			l.refuse(p, err)
			return
		}
		l.answerAttach()
	})
}

func (l *incomingLink) answerAttach() {
	p := l.attach
	l.attach = nil
	reply := amqp.Attach{
		Name: p.Name, Handle: p.Handle, Role: amqp.RoleReceiver,
		SndSettleMode: p.SndSettleMode, RcvSettleMode: p.RcvSettleMode,
		Source: p.Source, Target: p.Target, MaxMessageSize: uint64(l.maxSize),
	}
	if reply.Source == nil {
		reply.Source = &amqp.Source{}
	}
	if l.target != nil {
		reply.Properties = amqp.Map{{Key: amqp.Symbol("com.microsoft:max-message-batch-size"), Value: uint64(l.info.MaxBatchSize)}}
	}
	l.s.send(&reply)
	l.deliveryCount = p.InitialDeliveryCount.Or(0)
	l.topUp()
}

// open resolves the node and checks the claim.
func (l *incomingLink) open(n node) error {
	c := l.s.c
	switch n.kind {
	case nodeCoordinator:
		l.coordinator = true
		return nil
	case nodeCBS:
		if err := c.cbs.attachRequests(); err != nil {
			return err
		}
		l.request = &c.cbs
		return nil
	case nodeManagement:
		if !c.may(RightListen|RightSend|RightManage, n.path+managementSuffix) {
			return errUnauthorized("Manage,Listen", n.path+managementSuffix)
		}
		info, err := c.srv.broker.Lookup(n.path)
		if err != nil {
			return err
		}
		l.info, l.request = info, &managementNode{srv: c.srv, path: n.path}
		l.maxSize = max(info.MaxMessageSize, broker.StandardMaxMessageSize)
		return nil
	default:
		return l.openEntity()
	}
}

func (l *incomingLink) openEntity() error {
	c := l.s.c
	info, err := c.srv.broker.Lookup(l.path)
	if l.via != "" && err == nil {
		_, err = c.srv.broker.Lookup(l.via)
	}
	if err != nil {
		return err
	}
	l.claim = RightSend
	for _, path := range []string{l.path, l.via} {
		if path != "" && !c.may(l.claim, path) {
			return errUnauthorized("Send", path)
		}
	}
	l.info, l.maxSize = info, info.MaxMessageSize
	l.target, err = c.srv.broker.OpenSender(l.path, func(err error) {
		c.post(event{fn: func() { l.ended(err) }})
	})
	return err
}

// topUp tells the peer its credit when half of it is used.
func (l *incomingLink) topUp() {
	if l.over() || l.detachGot || l.attach != nil || l.credit+l.inflight > incomingCredit/2 {
		return
	}
	l.credit = incomingCredit - l.inflight
	l.sendCredit(false)
}

func (l *incomingLink) sendCredit(echo bool) {
	l.s.sendFlow(&amqp.Flow{
		Handle: amqp.Some(l.handle), DeliveryCount: amqp.Some(l.deliveryCount),
		LinkCredit: amqp.Some(l.credit), Echo: echo,
	})
}

// handleFlow takes the sender's delivery count, which it may advance on its own
// (section 2.6.7).
func (l *incomingLink) handleFlow(p *amqp.Flow) {
	if p.DeliveryCount.Set && !l.more {
		if skipped := p.DeliveryCount.Value - l.deliveryCount; skipped <= l.credit {
			l.deliveryCount += skipped
			l.credit -= skipped
		}
	}
	if p.Echo && l.attach == nil {
		l.sendCredit(false)
		return
	}
	l.topUp()
}

// handleTransfer takes a frame of a delivery (section 2.6.14).
func (l *incomingLink) handleTransfer(p *amqp.Transfer, payload []byte) {
	if l.over() || l.targetEnded || l.detachGot {
		return
	}
	if l.attach != nil { // no credit was given yet
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
		l.oversize += len(l.partial) + len(payload) // too large: only counted from here on
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
		message = append([]byte(nil), payload...) // the frame's buffer is used again
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
	if _, ok := l.s.c.srv.credits.take(len(batch)); !ok {
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

// sendOn hands messages to the broker and answers when they are durable, unless
// the delivery is settled. done, if any, is called then, on the loop.
func (l *incomingLink) sendOn(batch []broker.Message, id uint32, size int, settled bool, done func()) {
	c := l.s.c
	l.target.Send(batch, func(err error) {
		if settled {
			if err != nil {
				c.log.Debug("settled message refused", "link", l.name, "error", err)
			}
			err = errPreSettled
		}
		c.post(event{link: l, id: id, n: size, err: err})
		if done != nil {
			c.post(event{fn: done})
		}
	})
}

// errPreSettled marks a delivery that needs no disposition.
var errPreSettled = errors.New("settled by the sender")

// handleEvent is the broker's answer to a message.
func (l *incomingLink) handleEvent(e event) {
	l.s.c.inflight -= e.n
	l.finish(e.id, e.err)
}

// finishNow answers the delivery that was received last.
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

// finishAs answers the delivery that was received last with a state of transactions.
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

// detach ends the link because of what the peer did.
func (l *incomingLink) detach(e *amqp.Error) {
	l.sendDetach(e)
	l.release()
}

// ended is the broker ending the sender.
func (l *incomingLink) ended(err error) {
	if l.over() {
		return
	}
	l.targetEnded = true
	l.s.c.detachLater(err, func() { l.detach(wireError(err)) })
}

// handleDetach answers the peer's Detach when everything it has sent is answered.
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
