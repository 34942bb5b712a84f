package servicebus

import (
	"encoding/binary"
	"strconv"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

func (c *floorConn) frame(h amqp.FrameHeader, body []byte) bool {
	code, _ := amqp.PerformativeCode(body)
	s := c.sessions[h.Channel]
	switch code {
	case amqp.CodeSASLInit:
		c.out = amqp.AppendFrame(c.out, amqp.FrameSASL, 0, &amqp.SASLOutcome{})
	case amqp.CodeOpen:
		c.send(0, &amqp.Open{ContainerID: "floor", MaxFrameSize: 65536, ChannelMax: 4999, IdleTimeout: 240000})
	case amqp.CodeBegin:
		c.sessions[h.Channel] = &floorSession{links: make(map[uint32]*floorLink)}
		c.send(h.Channel, &amqp.Begin{RemoteChannel: amqp.Some(h.Channel), IncomingWindow: 1 << 20, OutgoingWindow: 1 << 20, HandleMax: 255})
	case amqp.CodeEnd:
		delete(c.sessions, h.Channel)
		c.send(h.Channel, &amqp.End{})
	case amqp.CodeClose:
		c.send(0, &amqp.Close{})
		return false
	case amqp.CodeAttach:
		var p amqp.Attach
		_, _ = amqp.DecodePerformative(append([]byte(nil), body...), &p)
		c.attach(h.Channel, s, &p)
	case amqp.CodeDetach:
		var p amqp.Detach
		_, _ = amqp.DecodePerformative(body, &p)
		delete(s.links, p.Handle)
		c.send(h.Channel, &amqp.Detach{Handle: p.Handle, Closed: true})
	case amqp.CodeTransfer:
		var p amqp.Transfer
		payload, _ := amqp.DecodePerformative(body, &p)
		c.transfer(h.Channel, s, &p, payload)
	case amqp.CodeFlow:
		var p amqp.Flow
		_, _ = amqp.DecodePerformative(body, &p)
		if l := s.links[p.Handle.Or(1<<31)]; l != nil && l.out && !l.replies {
			for n := p.DeliveryCount.Value + p.LinkCredit.Value - l.count; n > 0; n-- {
				c.deliver(h.Channel, s, l)
			}
		}
	case amqp.CodeDisposition:
		var p amqp.Disposition
		_, _ = amqp.DecodePerformative(body, &p)
		if !p.Settled {
			c.send(h.Channel, &amqp.Disposition{Role: amqp.RoleSender, First: p.First, Last: p.Last, Settled: true, State: amqp.StateAccepted})
		}
	}
	return true
}

func (c *floorConn) attach(channel uint16, s *floorSession, p *amqp.Attach) {
	l := &floorLink{out: p.Role == amqp.RoleReceiver, handle: p.Handle}
	s.links[p.Handle] = l
	reply := *p
	reply.Role = !p.Role
	reply.Properties = nil
	reply.MaxMessageSize = 1 << 20
	if !l.out {
		c.send(channel, &reply)
		c.flow(channel, s, &amqp.Flow{Handle: amqp.Some(p.Handle), DeliveryCount: amqp.Some(uint32(0)), LinkCredit: amqp.Some(uint32(1 << 30))})
		return
	}
	l.replies = p.Target != nil && p.Target.Address.Or("") != ""
	reply.InitialDeliveryCount = amqp.Some(uint32(0))
	if len(p.Source.Filter) > 0 {
		c.f.mu.Lock()
		c.f.session++
		l.session = "s" + strconv.Itoa(c.f.session)
		c.f.mu.Unlock()
		reply.Source.Filter = amqp.Map{{Key: amqp.Symbol("com.microsoft:session-filter"), Value: amqp.Described{Descriptor: uint64(0x137000000C), Value: l.session}}}
		reply.Properties = amqp.Map{{Key: amqp.Symbol("com.microsoft:locked-until-utc"), Value: dotNet(time.Now().Add(time.Minute))}}
	}
	c.send(channel, &reply)
}

// transfer accepts a message, or answers a request for a token.
func (c *floorConn) transfer(channel uint16, s *floorSession, p *amqp.Transfer, payload []byte) {
	s.incoming++
	if s.incoming%(1<<18) == 0 {
		c.flow(channel, s, &amqp.Flow{})
	}
	l := s.links[p.Handle]
	if c.f.log != nil && !c.f.keep(payload, p.More) {
		return
	}
	if p.More {
		return
	}
	for _, o := range s.links {
		if o.replies {
			answer, err := grantedToken(payload)
			if err != nil {
				return
			}
			c.message(channel, s, o, nil, true, answer)
		}
	}
	id := p.DeliveryID
	if !id.Set { // the last of several frames: the floor does not store the delivery id
		id = amqp.Some(l.count)
	}
	l.count++
	c.send(channel, &amqp.Disposition{Role: amqp.RoleReceiver, First: id.Value, Settled: true, State: amqp.StateAccepted})
}

func (c *floorConn) deliver(channel uint16, s *floorSession, l *floorLink) {
	var token [16]byte
	binary.BigEndian.PutUint64(token[8:], uint64(s.delivery)+1)
	c.message(channel, s, l, token[:], false, c.f.payload)
}

func (c *floorConn) message(channel uint16, s *floorSession, l *floorLink, tag []byte, settled bool, payload []byte) {
	if tag == nil {
		tag = []byte{1}
	}
	var mark int
	c.out, mark = amqp.BeginFrame(c.out, amqp.FrameAMQP, channel)
	c.out = (&amqp.Transfer{Handle: l.handle, DeliveryID: amqp.Some(s.delivery), DeliveryTag: tag, MessageFormat: amqp.Some(uint32(0)), Settled: settled}).Append(c.out)
	c.out = amqp.EndFrame(append(c.out, payload...), mark)
	s.delivery++
	s.outgoing++
	l.count++
}

// grantedToken returns the answer to a put-token request with any token.
func grantedToken(request []byte) ([]byte, error) {
	m, err := amqp.SplitMessage(request)
	if err != nil {
		return nil, err
	}
	asked, err := amqp.DecodeProperties(m.Properties)
	if err != nil {
		return nil, err
	}
	var p amqp.Properties
	p[amqp.CorrelationID] = asked[amqp.MessageID]
	w := amqp.BeginMapSection(p.Append(nil), amqp.CodeApplicationProperties)
	w.String("status-code", int32(200))
	return amqp.AppendValueSection(w.Finish(), nil), nil
}

// dotNet returns a time in .NET's ticks: 100 ns since the year 1.
func dotNet(t time.Time) int64 {
	const epoch = 621355968000000000
	return t.UnixNano()/100 + epoch
}

// keep writes a transfer to the log and syncs it at the end of a message.
func (f *floor) keep(payload []byte, more bool) bool {
	_, err := f.log.Write(payload)
	if err == nil && !more {
		err = f.log.Sync()
	}
	return err == nil
}
