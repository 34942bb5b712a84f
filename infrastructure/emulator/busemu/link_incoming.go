package busemu

import (
	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// incomingCredit limits the messages in flight on one link.
const incomingCredit = 1000

// transferDestination is the property of a link that sends via its target to another entity.
const transferDestination = "com.microsoft:transfer-destination-address"

// incomingLink receives messages of a peer for an entity, $cbs or $management.
type incomingLink struct {
	linkBase
	info    broker.EntityInfo // of an entity
	via     string            // entity via which the peer sends to another; messages go to the other one directly
	target  *broker.Sender    // nil unless the node is an entity
	request requestNode       // nil if the node is an entity
	// coordinator reports that the link declares and discharges transactions.
	coordinator bool
	maxSize     int

	deliveryCount uint32
	credit        uint32 // remaining credit of the peer
	inflight      uint32 // received and not answered

	more        bool // the last delivery is incomplete
	deliveryID  uint32
	format      uint32
	settled     bool
	txn         []byte // transaction of the delivery; nil: none
	partial     []byte
	oversize    int  // bytes so far of a message that is too large
	targetEnded bool // the broker has closed the sender; a Detach follows
}

// requestNode serves the requests to $cbs or $management.
type requestNode interface {
	// handleRequest answers by session.reply, now or later.
	handleRequest(s *session, message []byte)
}

// attachIncoming attaches a sender of the peer. Settle modes are echoed, and max-message-size
// is always set (AMQP 1.0 part 3, sections 3.2 and 3.3).
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
		info, err := c.ns.broker.Lookup(n.path)
		if err != nil {
			return err
		}
		l.info, l.request = info, c.management(n.path)
		l.maxSize = max(info.MaxMessageSize, broker.StandardMaxMessageSize)
		return nil
	default:
		return l.openEntity()
	}
}

func (l *incomingLink) openEntity() error {
	c := l.s.c
	info, err := c.ns.broker.Lookup(l.path)
	if l.via != "" && err == nil {
		_, err = c.ns.broker.Lookup(l.via)
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
	l.target, err = c.ns.broker.OpenSender(l.path, func(err error) {
		c.post(event{fn: func() { l.ended(err) }})
	})
	return err
}

// topUp restores the peer's credit when half of it is used.
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

// handleFlow applies the sender's delivery count, which it may advance itself (section 2.6.7).
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
