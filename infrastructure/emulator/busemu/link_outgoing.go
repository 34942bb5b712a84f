package busemu

import (
	"fmt"
	"math"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

const (
	// A link takes messages from the broker ahead of what it has sent, however much
	// credit the peer gave: as many as are prefetchBytes together, by the size of
	// those before, and at most prefetchMax.
	prefetchBytes = 1 << 20
	prefetchMax   = 256
	// turn is how many messages a link sends before the next link's turn.
	turn = 32
)

// outgoingLink sends messages of an entity, or the replies of $cbs and
// $management, to a receiver of the peer.
//
// The peer's credit is passed on to the broker in small parts, as messages
// leave: what a slow reader asked for stays in the entity.
type outgoingLink struct {
	linkBase
	node   node
	target string // address of the peer's target: where replies are sent to
	info   broker.EntityInfo
	source *broker.Receiver // nil while a session is awaited, and for replies
	cancel func()           // gives up awaiting a session; nil otherwise
	// subscription is that of a consumer of a topic itself; nil otherwise.
	subscription *jmsSubscription
	opened       bool // $cbs: it counts as the connection's receiver
	preSettle,
	browser, // messages are shown, not given
	plainFilter bool // the session filter came without a descriptor

	deliveryCount uint32
	credit        uint32 // what the peer has room for, messages in pending included
	pending       []broker.Delivery
	replies       [][]byte
	queued        bool // in session.ready
	held, allowed bool // by a fault: nothing is sent; the next message is sent

	seen    uint32 // the broker's delivery count, as of pending
	granted uint32 // credit the broker has of this link
	average int    // size of the messages so far, the last ones counting most

	drain     bool // the peer asked for it and has not been answered
	draining  bool // the broker was asked
	exhausted bool // the broker has given up the rest of the credit
	leaving   *amqp.Detach

	arrivals     []broker.Delivery // guarded by conn.mu
	arrived      bool              // guarded by conn.mu: takeArrivals is posted
	takeArrivals func()
}

// delivery is a message the peer has and has not settled.
type delivery struct {
	link     *outgoingLink
	id       uint32
	token    broker.LockToken
	settling bool
	echo     []byte // the state that confirms what the peer asked for; set with settling
}

// attachOutgoing attaches a receiver of the peer.
func (s *session) attachOutgoing(b linkBase, p *amqp.Attach) {
	if p.Source == nil {
		s.attachUnsubscription(b, p)
		return
	}
	l := &outgoingLink{
		average:  prefetchBytes / 16, // until the first messages have been seen
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

// open resolves the node, checks the claim and opens the receiver, which for a
// session may take its time.
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

// browses reads a source's distribution-mode (part 3, section 3.5.7): whether messages
// are copied to the peer instead of moved.
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

// answerAttach sends the reply to an attach that was granted.
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
