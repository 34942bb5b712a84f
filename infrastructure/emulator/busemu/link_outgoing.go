package busemu

import (
	"fmt"
	"math"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

const (
	// A link prefetches messages from the broker, whatever the peer's credit: about
	// prefetchBytes, estimated by the size of earlier messages, and prefetchMax messages at
	// most.
	prefetchBytes = 1 << 20
	prefetchMax   = 256
	// turn is the number of messages that a link sends before the next link's turn.
	turn = 32
)

// outgoingLink sends messages of an entity, or replies of $cbs and $management, to a receiver
// of the peer.
//
// It passes the peer's credit to the broker in small parts as messages leave, so that the
// messages for a slow reader stay in the entity.
type outgoingLink struct {
	linkBase
	node   node
	target string // address of the peer's target, to which replies are sent
	info   broker.EntityInfo
	source *broker.Receiver // nil while waiting for a session, and for replies
	cancel func()           // cancels the wait for a session; nil otherwise
	// subscription is set for a consumer of a topic itself.
	subscription *jmsSubscription
	opened       bool // $cbs: it is the connection's receiver
	preSettle,
	browser, // messages are copied, not consumed
	plainFilter bool // the session filter came without a descriptor

	deliveryCount uint32
	credit        uint32 // the peer's credit, including messages in pending
	pending       []broker.Delivery
	replies       [][]byte
	queued        bool // in session.ready
	held, allowed bool // by a fault: nothing is sent; the next message is sent

	seen    uint32 // the broker's delivery count, including pending
	granted uint32 // credit passed to the broker
	average int    // weighted size of the messages so far

	drain     bool // requested by the peer and not answered
	draining  bool // requested from the broker
	exhausted bool // the broker has dropped the rest of the credit
	leaving   *amqp.Detach

	arrivals     []broker.Delivery // guarded by conn.mu
	arrived      bool              // guarded by conn.mu: takeArrivals is posted
	takeArrivals func()
}

// delivery is a message that the peer has not settled.
type delivery struct {
	link     *outgoingLink
	id       uint32
	token    broker.LockToken
	settling bool
	echo     []byte // state that confirms the peer's outcome; set with settling
}

// attachOutgoing attaches a receiver of the peer.
func (s *session) attachOutgoing(b linkBase, p *amqp.Attach) {
	if p.Source == nil {
		s.attachUnsubscription(b, p)
		return
	}
	l := &outgoingLink{
		average:  prefetchBytes / 16, // until the first messages arrive
		linkBase: b, node: parseAddress(p.Source.Address.Or("")),
		preSettle: p.SndSettleMode.Or(amqp.SenderMixed) == amqp.SenderSettled,
	}
	if p.Target != nil {
		l.target = p.Target.Address.Or("")
	}
	l.path = l.node.path
	l.takeArrivals = l.handleArrivals
	s.links[b.handle] = l
	s.c.performAttach(l, p, l.node, func() {
		if err := l.open(); err != nil {
			l.refuse(p, err)
			return
		}
		if l.cancel == nil {
			l.answerAttach()
		}
	})
}

// open resolves the node, checks the claim and opens the receiver. A session may take a while.
func (l *outgoingLink) open() error {
	c := l.s.c
	switch l.node.kind {
	case nodeCBS:
		err := c.cbs.attachReplies()
		l.opened = err == nil
		return err
	case nodeManagement:
		if !c.may(RightListen|RightSend|RightManage, l.node.path+managementSuffix) {
			return errUnauthorized("Manage,Listen", l.node.path+managementSuffix)
		}
		_, err := c.ns.broker.Lookup(l.node.path)
		return err
	default:
		return l.openEntity()
	}
}

func (l *outgoingLink) openEntity() error {
	c := l.s.c
	info, err := c.ns.broker.Lookup(l.node.path)
	if err != nil {
		return err
	}
	if l.claim = RightListen; !c.may(l.claim, l.node.path) {
		return errUnauthorized("Listen", l.node.path)
	}
	l.info = info
	o := broker.ReceiverOptions{
		Deliver: l.deliver,
		Closed:  func(err error) { c.post(event{fn: func() { l.ended(err) }}) },
	}
	if info.Kind == broker.KindTopic {
		return l.openTopic(o)
	}
	filter, wanted, err := sessionFilter(l.attach)
	if err != nil {
		return err
	}
	if l.browser, err = browses(l.attach.Source); err != nil {
		return err
	}
	switch {
	case l.browser && wanted:
		return &broker.Error{Condition: broker.NotImplemented, Description: "A browser of one session is not supported by this emulator: browse without the session filter, or peek."}
	case l.browser:
		o.Mode = broker.Browse
	case l.preSettle:
		o.Mode = broker.ReceiveAndDelete
	}
	if !wanted {
		l.source, err = c.ns.broker.OpenReceiver(l.node.path, o)
		return err
	}
	l.plainFilter = !filter.described
	l.acceptSession(broker.AcceptOptions{Session: filter.session, Timeout: filter.timeout}, o)
	return nil
}

// browses reports whether messages are copied to the peer instead of moved, by the source's
// distribution-mode (part 3, section 3.5.7).
func browses(s *amqp.Source) (bool, error) {
	switch s.DistributionMode {
	case "", "move":
		return false, nil
	case "copy":
		return true, nil
	default:
		return false, &amqp.Error{Condition: condNotImplemented, Description: fmt.Sprintf("The distribution-mode '%s' is not supported by this emulator.", s.DistributionMode)}
	}
}

// answerAttach answers an attach that was granted.
func (l *outgoingLink) answerAttach() {
	p := l.attach
	l.attach = nil
	reply := amqp.Attach{
		Name: p.Name, Handle: p.Handle, Role: amqp.RoleSender,
		SndSettleMode: p.SndSettleMode, RcvSettleMode: p.RcvSettleMode,
		Source: p.Source, Target: p.Target, InitialDeliveryCount: amqp.Some(uint32(0)),
		MaxMessageSize: math.MaxUint64,
	}
	if reply.Target == nil {
		reply.Target = &amqp.Target{}
	}
	if l.source != nil {
		if id, ok := l.source.Session(); ok {
			reply.Source.Filter = grantedFilter(id, l.plainFilter)
			reply.Properties = amqp.Map{{Key: amqp.Symbol("com.microsoft:locked-until-utc"), Value: ticks(l.source.SessionLockedUntil())}}
		}
	}
	l.s.send(&reply)
	l.grant()
	l.enqueue()
}
