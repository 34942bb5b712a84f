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
		_, err := c.srv.broker.Lookup(l.node.path)
		return err
	default:
		return l.openEntity()
	}
}

func (l *outgoingLink) openEntity() error {
	c := l.s.c
	info, err := c.srv.broker.Lookup(l.node.path)
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
		l.source, err = c.srv.broker.OpenReceiver(l.node.path, o)
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

// handleFlow takes the peer's credit (section 2.6.7). It may come before the
// attach was answered.
func (l *outgoingLink) handleFlow(p *amqp.Flow) {
	if p.LinkCredit.Set {
		// Absent before the peer has seen our attach: our first count is meant.
		l.credit = p.DeliveryCount.Or(0) + p.LinkCredit.Value - l.deliveryCount
		if int32(l.credit) < 0 && l.credit > math.MaxInt32 {
			l.credit = 0 // the peer has not seen all that was sent
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

// enqueue puts the link in line if it has something it may send.
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

// sendSome sends a turn's messages.
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
		case sent < len(l.pending) && l.afford() && l.mayDeliver():
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
	if err != nil { // checked when it came in
		c.log.Error("stored message does not decode", "entity", l.node.path, "sequence", d.SequenceNumber, "error", err)
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

// sendMessage sends a message in as many frames as the peer's max-frame-size
// demands, and returns its delivery id.
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

// transferOverhead bounds the header of a transfer frame with a 16-byte tag.
const transferOverhead = 80

// sendLinkFlow tells the peer the link's state, and that a drain is done.
func (l *outgoingLink) sendLinkFlow(drained bool) {
	l.s.sendFlow(&amqp.Flow{
		Handle: amqp.Some(l.handle), DeliveryCount: amqp.Some(l.deliveryCount),
		LinkCredit: amqp.Some(l.credit), Drain: drained,
	})
}

// giveBack returns what was taken from the broker and never sent.
func (l *outgoingLink) giveBack() {
	for i := range l.pending {
		if d := &l.pending[i]; d.LockToken != (broker.LockToken{}) && l.source != nil {
			l.source.Settle(d.LockToken, broker.Outcome{Kind: broker.Release}, func(error) {})
		}
	}
	clear(l.pending)
	l.pending = l.pending[:0]
}

// ended is the broker ending the receiver.
func (l *outgoingLink) ended(err error) {
	if l.over() {
		return
	}
	l.s.c.detachLater(err, func() { l.detach(wireError(err)) })
}

// detach detaches the link and gives up what it holds.
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
		l.s.c.srv.leave(l.subscription)
		l.subscription = nil
	}
	for _, reply := range l.replies {
		l.s.c.owed.Add(-int64(len(reply)))
	}
	l.replies = nil
}
