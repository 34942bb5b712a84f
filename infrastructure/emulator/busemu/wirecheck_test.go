package busemu

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// checkedConn is a client's connection that checks the frames of the broker. It fails the test
// on violations for which clients close connections:
//
//   - nothing for a link after its Detach, for a session after its End, at all after Close;
//   - an Attach before anything else of a link; a refusal has no terminus;
//   - no more messages than credit, no more frames than the window;
//   - delivery ids that rise by one, with a tag and a format;
//   - dispositions only of deliveries that exist and are not settled.
//
// All tests that use clientT or dial share it.
type checkedConn struct {
	net.Conn
	t testing.TB

	mu       sync.Mutex
	in, out  stream
	sessions map[uint16]*checkedSession
	closed   bool
}

// stream splits one direction into frames.
type stream struct {
	buf []byte
}

type checkedSession struct {
	ended     bool
	links     map[uint32]*checkedLink // by the handle of both
	delivery  uint32                  // next id of the broker
	sent      map[uint32]*checkedLink // by the broker, not settled
	received  map[uint32]*checkedLink // by the broker, not settled
	window    uint32                  // transfer id that the broker may not reach
	transfers uint32                  // frames the broker has sent
}

type checkedLink struct {
	name               string
	attached, detached bool // by the broker
	limit              uint32
	count              uint32
	more               bool
}

func checkConn(t testing.TB, nc net.Conn) net.Conn {
	return &checkedConn{Conn: nc, t: t, sessions: make(map[uint16]*checkedSession)}
}

func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	c.in.feed(b[:n], c.fromBroker)
	c.mu.Unlock()
	return n, err
}

// Write checks the frames before they are written, because the broker may answer before Write
// returns.
func (c *checkedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.out.feed(b, c.fromClient)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (s *stream) feed(b []byte, handle func(channel uint16, p amqp.Performative, payload []byte)) {
	s.buf = append(s.buf, b...)
	for len(s.buf) >= amqp.FrameHeaderSize {
		if string(s.buf[:4]) == "AMQP" {
			s.buf = s.buf[amqp.FrameHeaderSize:]
			continue
		}
		h, err := amqp.ParseFrameHeader(s.buf)
		if err != nil || int(h.Size) > len(s.buf) {
			return
		}
		body := append([]byte(nil), s.buf[int(h.Doff)*4:h.Size]...)
		s.buf = s.buf[h.Size:]
		if len(body) == 0 || h.Type == amqp.FrameSASL {
			continue
		}
		if p, payload, err := amqp.ParsePerformative(body); err == nil {
			handle(h.Channel, p, payload)
		}
	}
}

func (c *checkedConn) bad(format string, args ...any) {
	c.t.Errorf("the broker broke a rule of the wire: %s", fmt.Sprintf(format, args...))
}

func (c *checkedConn) fromClient(channel uint16, p amqp.Performative, _ []byte) {
	s := c.sessions[channel]
	switch p := p.(type) {
	case *amqp.Begin:
		c.sessions[channel] = &checkedSession{
			links: make(map[uint32]*checkedLink), sent: make(map[uint32]*checkedLink),
			received: make(map[uint32]*checkedLink), window: p.IncomingWindow,
		}
	case *amqp.Attach:
		s.links[p.Handle] = &checkedLink{name: p.Name}
	case *amqp.Flow:
		s.window = p.NextIncomingID.Or(0) + p.IncomingWindow
		if l := s.links[p.Handle.Or(1<<31)]; l != nil && p.LinkCredit.Set {
			if limit := p.DeliveryCount.Or(0) + p.LinkCredit.Value; int32(limit-l.limit) > 0 {
				l.limit = limit
			}
		}
	case *amqp.Transfer:
		if p.DeliveryID.Set && !p.Settled {
			s.received[p.DeliveryID.Value] = s.links[p.Handle]
		}
	}
}

func (c *checkedConn) fromBroker(channel uint16, p amqp.Performative, _ []byte) {
	if c.closed {
		c.bad("%T after Close", p)
	}
	switch p.(type) {
	case *amqp.Close:
		c.closed = true
		return
	case *amqp.Open:
		return
	}
	s := c.sessions[channel]
	if s == nil {
		c.bad("%T on channel %d, which has no session", p, channel)
		return
	}
	if s.ended {
		c.bad("%T after End on channel %d", p, channel)
	}
	switch p := p.(type) {
	case *amqp.End:
		s.ended = true
	case *amqp.Attach:
		c.link(s, p.Handle, "attach").attached = true
		if p.Role == amqp.RoleReceiver && p.Target != nil && p.MaxMessageSize == 0 {
			c.bad("link %s: no max-message-size", p.Name)
		}
	case *amqp.Detach:
		l := c.link(s, p.Handle, "detach")
		if !l.attached || !p.Closed {
			c.bad("link %s: detach (closed: %v) of a link that is attached: %v", l.name, p.Closed, l.attached)
		}
		l.detached = true
	case *amqp.Flow:
		if !p.NextIncomingID.Set {
			c.bad("flow without next-incoming-id")
		}
		if p.Handle.Set {
			if l := c.link(s, p.Handle.Value, "flow"); !l.attached {
				c.bad("link %s: flow before attach", l.name)
			}
		}
	case *amqp.Transfer:
		c.transfer(s, p)
	case *amqp.Disposition:
		c.disposition(s, p)
	}
}

func (c *checkedConn) link(s *checkedSession, handle uint32, what string) *checkedLink {
	l := s.links[handle]
	if l == nil {
		c.bad("%s on handle %d, which is not attached", what, handle)
		return &checkedLink{}
	}
	if l.detached {
		c.bad("link %s: %s after detach", l.name, what)
	}
	return l
}

func (c *checkedConn) transfer(s *checkedSession, p *amqp.Transfer) {
	l := c.link(s, p.Handle, "transfer")
	if !l.attached {
		c.bad("link %s: transfer before attach", l.name)
	}
	if int32(s.transfers-s.window) >= 0 {
		c.bad("transfer %d is beyond the window %d", s.transfers, s.window)
	}
	s.transfers++
	if !l.more {
		if !p.DeliveryID.Set || p.DeliveryTag == nil || !p.MessageFormat.Set {
			c.bad("link %s: first transfer of a delivery lacks its id, tag or format", l.name)
		}
		if p.DeliveryID.Value != s.delivery {
			c.bad("delivery %d follows %d", p.DeliveryID.Value, s.delivery-1)
		}
		s.delivery++
		if int32(l.count-l.limit) >= 0 {
			c.bad("link %s: message %d with credit for %d", l.name, l.count+1, l.limit)
		}
		if !p.Settled {
			s.sent[p.DeliveryID.Value] = l
		}
	}
	if l.more = p.More; !p.More {
		l.count++
	}
}

func (c *checkedConn) disposition(s *checkedSession, p *amqp.Disposition) {
	open := s.sent
	if p.Role == amqp.RoleReceiver {
		open = s.received
	}
	for id := p.First; ; id++ {
		l, ok := open[id]
		switch {
		case !ok:
			c.bad("disposition of delivery %d, which does not exist or is settled", id)
			return
		case l.detached:
			c.bad("link %s: disposition of delivery %d after detach", l.name, id)
		case !p.Settled:
			c.bad("disposition of delivery %d that does not settle", id)
		}
		delete(open, id)
		if id == p.Last.Or(p.First) {
			return
		}
	}
}
