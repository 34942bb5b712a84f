package busemu

import (
	"fmt"
	"strings"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// linkBase is what both ends of a link have.
//
//	attaching ─▶ attached ─▶ (peer detaches) ─▶ gone
//	    └───────────┴──────▶ detachSent ── Detach from the peer ──▶ gone
type linkBase struct {
	s          *session
	name       string
	handle     uint32
	attach     *amqp.Attach // the peer's, until it is answered
	detachSent bool         // by us: nothing more is sent, everything is ignored
	detachGot  bool         // the peer's has come; ours is owed
	gone       bool         // off the session's table
	idleness   idleness
	claim      Rights // what the link needs; 0: nothing
	path       string // of the entity, as the peer wrote it

	stalled bool   // a fault delays an operation of the link
	behind  []work // what waits for it
}

func (b *linkBase) base() *linkBase { return b }

// over reports that no frame may be sent for the link any more.
func (b *linkBase) over() bool { return b.detachSent || b.gone || b.s.ended }

// sendDetach detaches the link for good. Dispositions that were held back to be
// merged go first: none may follow.
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

// answerDetach answers a Detach of the peer. If the peer did not wait for its
// attach to be answered, that is made up for: it expects both.
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

// handleAttach attaches a link, or refuses it: with an Attach whose terminus is
// null and a Detach that tells why (section 2.6.3).
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

// refused is a link that was never attached; it waits for the peer's Detach.
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
	b.gone = true // what replaces it keeps the handle until the peer has detached
	l := &refused{linkBase: linkBase{s: b.s, name: b.name, handle: b.handle}}
	b.s.links[b.handle] = l
	l.sendDetach(wireError(err))
}

// performAttach serves the attach of a link to an entity, or what a fault makes
// of it. The link is on the session's table already, so that frames that follow
// the attach find it.
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

// node is what an address leads to.
type node struct {
	kind nodeKind
	path string // of the entity; for nodeManagement of the entity it manages
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

// parseAddress reads the address of a terminus: an entity path, $cbs or
// <entity>/$management, optionally as a URI.
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

// errUnauthorized is the refusal of a link without the claim.
func errUnauthorized(claim, resource string) *amqp.Error {
	return &amqp.Error{
		Condition:   condUnauthorized,
		Description: fmt.Sprintf("Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.", claim, resource),
	}
}
