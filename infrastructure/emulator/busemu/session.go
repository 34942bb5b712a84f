package busemu

import (
	"fmt"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

const (
	// incomingWindow and outgoingWindow are the session windows offered, in transfer frames.
	incomingWindow = 5000
	outgoingWindow = 5000
	// handleMax limits the links of a session. The JavaScript SDK keeps all links of a
	// connection in one session.
	handleMax = 8191
)

// session is one AMQP session (AMQP 1.0 part 2, section 2.5). It uses the peer's channel
// number, and its links use the peer's handles. Its connection's loop owns it.
//
//	mapped ── End from the peer ──▶ gone
//	   └──── end() ──▶ ended ── End from the peer ──▶ gone
type session struct {
	c       *conn
	channel uint16
	links   map[uint32]link
	ended   bool // we sent End first: frames are ignored until the peer's End

	nextIncomingID uint32
	received       uint32 // transfer frames since the last flow

	nextOutgoingID       uint32
	remoteIncomingWindow uint32
	nextDeliveryID       uint32
	unsettled            map[uint32]*delivery // sent, not settled
	ready                []*outgoingLink      // links with something to send, in turn
	busy                 bool                 // in conn.busy
}

// link is one end of an attached link: an incomingLink or an outgoingLink.
type link interface {
	base() *linkBase
	handleFlow(p *amqp.Flow)
	// handleDetach answers the peer's Detach, at once or when the link has finished.
	handleDetach(p *amqp.Detach)
	// release releases everything the link has at the broker, without sending a frame.
	release()
}

func newSession(c *conn, channel uint16, p *amqp.Begin) *session {
	return &session{
		c: c, channel: channel, links: make(map[uint32]link),
		nextIncomingID: p.NextOutgoingID, remoteIncomingWindow: p.IncomingWindow,
		unsettled: make(map[uint32]*delivery),
	}
}

func (s *session) send(p amqp.Performative) {
	if !s.ended {
		s.c.send(s.channel, p)
	}
}

// end ends the session because of an error of the peer.
func (s *session) end(condition amqp.Symbol, description string) {
	if s.ended {
		return
	}
	s.c.settlements.flush()
	s.send(&amqp.End{Error: &amqp.Error{Condition: condition, Description: description}})
	s.c.log.Debug("session ended", "channel", s.channel, "condition", string(condition), "description", description)
	s.release()
	s.ended = true
}

// release releases all links.
func (s *session) release() {
	for handle, l := range s.links {
		delete(s.links, handle)
		l.base().gone = true
		l.release()
	}
	clear(s.unsettled)
	s.ready = nil
}

// handle handles a frame of this session. The error is a decoding error, which
// ends the connection.
func (s *session) handle(code uint64, body []byte) error {
	if s.ended && code != amqp.CodeEnd {
		return nil
	}
	switch code {
	case amqp.CodeTransfer:
		var p amqp.Transfer
		payload, err := amqp.DecodePerformative(body, &p)
		if err == nil {
			s.handleTransfer(&p, payload)
		}
		return err
	case amqp.CodeDisposition:
		var p amqp.Disposition
		_, err := amqp.DecodePerformative(body, &p)
		if err == nil {
			s.handleDisposition(&p)
		}
		return err
	case amqp.CodeFlow:
		var p amqp.Flow
		_, err := amqp.DecodePerformative(body, &p)
		if err == nil {
			s.handleFlow(&p)
		}
		return err
	case amqp.CodeAttach:
		// A copy, because the link keeps parts of the frame and the buffer is reused.
		var p amqp.Attach
		_, err := amqp.DecodePerformative(append([]byte(nil), body...), &p)
		if err == nil {
			s.handleAttach(&p)
		}
		return err
	case amqp.CodeDetach:
		var p amqp.Detach
		_, err := amqp.DecodePerformative(body, &p)
		if err == nil {
			s.handleDetach(&p)
		}
		return err
	case amqp.CodeEnd:
		var p amqp.End
		_, err := amqp.DecodePerformative(body, &p)
		if err == nil {
			s.handleEnd()
		}
		return err
	default:
		return fmt.Errorf("unexpected performative 0x%02x", code)
	}
}

func (s *session) handleEnd() {
	s.c.settlements.flush()
	s.release()
	s.send(&amqp.End{})
	delete(s.c.sessions, s.channel)
}

func (s *session) handleTransfer(p *amqp.Transfer, payload []byte) {
	if s.received >= incomingWindow {
		s.end(condWindowViolation, "transfer beyond the incoming window")
		return
	}
	s.nextIncomingID++
	s.received++
	if s.received >= incomingWindow/2 {
		s.sendFlow(&amqp.Flow{})
	}
	l, ok := s.links[p.Handle]
	if !ok {
		s.end(condUnattachedHandle, fmt.Sprintf("transfer on handle %d, which is not attached", p.Handle))
		return
	}
	in, ok := l.(*incomingLink)
	if !ok {
		s.end(condErrantLink, fmt.Sprintf("transfer on handle %d, which is a receiver", p.Handle))
		return
	}
	in.handleTransfer(p, payload)
}

// sendFlow sends a flow with the session's fields filled in (section 2.7.4).
func (s *session) sendFlow(p *amqp.Flow) {
	s.received = 0
	p.NextIncomingID = amqp.Some(s.nextIncomingID)
	p.IncomingWindow = incomingWindow
	p.NextOutgoingID = s.nextOutgoingID
	p.OutgoingWindow = outgoingWindow
	s.send(p)
}

// handleFlow applies the peer's window (section 2.5.6) and passes the rest to the link.
func (s *session) handleFlow(p *amqp.Flow) {
	s.nextIncomingID = p.NextOutgoingID
	// The peer sends no id before it has seen our Begin: our first id, 0, applies.
	s.remoteIncomingWindow = p.NextIncomingID.Or(0) + p.IncomingWindow - s.nextOutgoingID
	if int32(s.remoteIncomingWindow) < 0 && s.remoteIncomingWindow > outgoingWindow {
		s.remoteIncomingWindow = 0 // more is in flight than the peer has room for
	}
	if !p.Handle.Set {
		if p.Echo {
			s.sendFlow(&amqp.Flow{})
		}
		return
	}
	l, ok := s.links[p.Handle.Value]
	if !ok {
		s.end(condUnattachedHandle, fmt.Sprintf("flow on handle %d, which is not attached", p.Handle.Value))
		return
	}
	if !l.base().detachSent {
		l.handleFlow(p)
	}
}

func (s *session) handleDetach(p *amqp.Detach) {
	l, ok := s.links[p.Handle]
	if !ok {
		s.end(condUnattachedHandle, fmt.Sprintf("detach of handle %d, which is not attached", p.Handle))
		return
	}
	if l.base().detachSent {
		delete(s.links, p.Handle)
		return
	}
	l.base().detachGot = true
	l.handleDetach(p)
}

// handleDisposition settles deliveries to the peer. Dispositions of the sending role only
// confirm settlements of this broker.
func (s *session) handleDisposition(p *amqp.Disposition) {
	if p.Role == amqp.RoleSender {
		return
	}
	last := p.Last.Or(p.First)
	if last-p.First >= uint32(len(s.unsettled))+outgoingWindow {
		last = p.First + uint32(len(s.unsettled)) + outgoingWindow // ids that cannot exist
	}
	var state amqp.State
	if p.State != nil {
		var err error
		if state, err = amqp.DecodeState(p.State); err != nil {
			s.end(condDecodeError, err.Error())
			return
		}
	}
	for id := p.First; ; id++ {
		if d, ok := s.unsettled[id]; ok {
			d.link.handleOutcome(d, &state, p.Settled)
		}
		if id == last {
			return
		}
	}
}

// transmit sends the links' messages in turns, as far as the windows and the peer's speed
// allow.
func (s *session) transmit() {
	for len(s.ready) > 0 && s.remoteIncomingWindow > 0 && !s.c.outputFull() {
		l := s.ready[0]
		copy(s.ready, s.ready[1:])
		s.ready = s.ready[:len(s.ready)-1]
		l.queued = false
		l.sendSome()
	}
}
