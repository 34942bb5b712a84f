package busemu

import (
	"fmt"
	"strings"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// linkBase has the fields of both kinds of link.
//
//	attaching ─▶ attached ─▶ (peer detaches) ─▶ gone
//	    └───────────┴──────▶ detachSent ── Detach from the peer ──▶ gone
type linkBase struct {
	s          *session
	name       string
	handle     uint32
	attach     *amqp.Attach // the peer's; nil once answered
	detachSent bool         // by us: nothing more is sent, and all frames are ignored
	detachGot  bool         // by the peer, not answered yet
	gone       bool         // removed from the session's table
	idleness   idleness
	claim      Rights // right that the link needs; 0: none
	path       string // of the entity, as the peer wrote it

	stalled bool   // a fault delays an operation of the link
	delayed []work // operations delayed by it
}

func (b *linkBase) base() *linkBase { return b }

// over reports whether no more frames may be sent for the link.
func (b *linkBase) over() bool { return b.detachSent || b.gone || b.s.ended }

// sendDetach detaches the link for good. It first flushes dispositions held back to be merged,
// because none may follow.
func (b *linkBase) sendDetach(e *amqp.Error) {
	if b.over() {
		return
	}
	b.s.c.settlements.flush()
	b.s.send(&amqp.Detach{Handle: b.handle, Closed: true, Error: e})
	b.detachSent = true
	if b.detachGot {
		b.remove()
	}
	if e != nil {
		b.s.c.log.Debug("link detached", "link", b.name, "condition", string(e.Condition), "description", e.Description)
	}
}

// answerDetach answers the peer's Detach. If the attach was not answered yet, it is answered
// first: the peer expects both.
func (b *linkBase) answerDetach() {
	if p := b.attach; p != nil {
		b.refuse(p, &amqp.Error{Condition: amqp.Symbol(broker.OperationCancelled), Description: "The link was detached before it was attached."})
	} else {
		b.sendDetach(nil)
	}
	b.remove()
}

func (b *linkBase) remove() {
	b.gone = true
	delete(b.s.links, b.handle)
}

// handleAttach attaches a link. It refuses one with an Attach that has a null terminus, and a
// Detach with the error.
//
// Source: AMQP 1.0 part 2, section 2.6.3.
func (s *session) handleAttach(p *amqp.Attach) {
	if p.Handle > handleMax {
		s.c.fail(condFramingError, fmt.Sprintf("handle %d exceeds the handle-max of %d", p.Handle, handleMax))
		return
	}
	if _, used := s.links[p.Handle]; used {
		s.end(condHandleInUse, fmt.Sprintf("handle %d is attached already", p.Handle))
		return
	}
	b := linkBase{s: s, name: p.Name, handle: p.Handle, attach: p}
	if p.Role == amqp.RoleSender {
		s.attachIncoming(b, p)
	} else {
		s.attachOutgoing(b, p)
	}
}

// refused is a link that was refused and waits for the peer's Detach.
type refused struct{ linkBase }

func (*refused) handleFlow(*amqp.Flow)     {}
func (*refused) handleDetach(*amqp.Detach) {}
func (*refused) release()                  {}

// refuse answers an attach with a null terminus and a Detach.
func (b *linkBase) refuse(p *amqp.Attach, err error) {
	b.attach = nil
	reply := amqp.Attach{
		Name: p.Name, Handle: p.Handle, Role: !p.Role,
		SndSettleMode: p.SndSettleMode, RcvSettleMode: p.RcvSettleMode,
	}
	if p.Role == amqp.RoleSender {
		reply.Source = p.Source
	} else {
		reply.Target = p.Target
		reply.InitialDeliveryCount = amqp.Some(uint32(0))
	}
	b.s.send(&reply)
	b.gone = true // its replacement keeps the handle until the peer has detached
	l := &refused{linkBase: linkBase{s: b.s, name: b.name, handle: b.handle}}
	b.s.links[b.handle] = l
	l.sendDetach(wireError(err))
}

// performAttach serves the attach of a link to an entity, with the faults of hooks. The link
// is in the session's table already, so that later frames find it.
func (c *conn) performAttach(l link, p *amqp.Attach, n node, serve func()) {
	if n.kind != nodeEntity {
		serve()
		return
	}
	b := l.base()
	c.perform(work{
		link:   b,
		call:   func() *Call { return &Call{Operation: OpAttach, Entity: n.path, Link: p.Name, Receiver: bool(p.Role)} },
		serve:  serve,
		refuse: func(err error) { b.refuse(p, err) },
	})
}

// node is the target of an address.
type node struct {
	kind nodeKind
	path string // of the entity; for nodeManagement of the managed entity
}

type nodeKind uint8

const (
	nodeEntity nodeKind = iota
	nodeCBS
	nodeManagement
	nodeCoordinator
)

const (
	cbsAddress       = "$cbs"
	managementSuffix = "/$management"
)

// parseAddress parses the address of a terminus: an entity path, $cbs or <entity>/$management,
// optionally as a URI.
func parseAddress(address string) node {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		_, address, _ = strings.Cut(rest, "/")
	}
	address = strings.Trim(address, "/")
	if strings.EqualFold(address, cbsAddress) {
		return node{kind: nodeCBS}
	}
	if n := len(address) - len(managementSuffix); n > 0 && strings.EqualFold(address[n:], managementSuffix) {
		return node{kind: nodeManagement, path: address[:n]}
	}
	return node{kind: nodeEntity, path: address}
}

// errUnauthorized refuses a link without the claim.
func errUnauthorized(claim, resource string) *amqp.Error {
	return &amqp.Error{
		Condition:   condUnauthorized,
		Description: fmt.Sprintf("Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.", claim, resource),
	}
}
