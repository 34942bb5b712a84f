package busemu

import (
	"bufio"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// floor is a broker that accepts and forgets: what a client can reach at most.
// It speaks just enough AMQP to be sent to and received from, checks nothing,
// keeps nothing, and answers in the goroutine that reads.
type floor struct {
	l       net.Listener
	wg      sync.WaitGroup
	payload []byte // of every message that is received from it
	mu      sync.Mutex
	session int // the next session to be accepted
}

func startFloor(tb testing.TB, payload []byte) *floor {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &floor{l: l, payload: payload}
	var conns sync.Map
	f.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conns.Store(nc, nil)
			f.wg.Go(func() { f.serve(nc) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		conns.Range(func(nc, _ any) bool { _ = nc.(net.Conn).Close(); return true })
		f.wg.Wait()
	})
	return f
}

func (f *floor) connectionString() string {
	return "Endpoint=sb://" + f.l.Addr().String() + ";SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"
}

type floorLink struct {
	out     bool
	replies bool
	handle  uint32
	count   uint32
	session string
}

type floorSession struct {
	links    map[uint32]*floorLink
	incoming uint32
	outgoing uint32
	delivery uint32
}

type floorConn struct {
	f        *floor
	out      []byte
	sessions map[uint16]*floorSession
}

func (f *floor) serve(nc net.Conn) {
	defer nc.Close()
	r := bufio.NewReaderSize(nc, 1<<17)
	c := &floorConn{f: f, sessions: make(map[uint16]*floorSession)}
	header := make([]byte, amqp.FrameHeaderSize)
	var body []byte
	for {
		if r.Buffered() == 0 && len(c.out) > 0 {
			if _, err := nc.Write(c.out); err != nil {
				return
			}
			c.out = c.out[:0]
		}
		if _, err := readFull(r, header); err != nil {
			return
		}
		if string(header[:4]) == "AMQP" {
			c.out = append(c.out, header...)
			if header[4] == byte(amqp.ProtocolSASL) {
				c.out = amqp.AppendFrame(c.out, amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: []amqp.Symbol{"ANONYMOUS"}})
			}
			continue
		}
		h, err := amqp.ParseFrameHeader(header)
		if err != nil {
			return
		}
		if cap(body) < int(h.Size) {
			body = make([]byte, h.Size)
		}
		body = body[:h.Size-amqp.FrameHeaderSize]
		if _, err := readFull(r, body); err != nil {
			return
		}
		if len(body) > 0 && !c.frame(h, body) {
			_, _ = nc.Write(c.out)
			return
		}
	}
}

func readFull(r *bufio.Reader, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := r.Read(b[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (c *floorConn) send(channel uint16, p amqp.Performative) {
	c.out = amqp.AppendFrame(c.out, amqp.FrameAMQP, channel, p)
}

func (c *floorConn) flow(channel uint16, s *floorSession, p *amqp.Flow) {
	p.NextIncomingID, p.IncomingWindow, p.NextOutgoingID, p.OutgoingWindow = amqp.Some(s.incoming), 1<<20, s.outgoing, 1<<20
	c.send(channel, p)
}

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
		reply.Source.Filter = grantedFilter(l.session, false)
		reply.Properties = amqp.Map{{Key: amqp.Symbol("com.microsoft:locked-until-utc"), Value: ticks(time.Now().Add(time.Minute))}}
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
	if p.More {
		return
	}
	for _, o := range s.links {
		if o.replies {
			r, err := parseRequest(payload)
			if err != nil {
				return
			}
			c.message(channel, s, o, nil, true, r.response(func(w *amqp.MapWriter) { w.String("status-code", int32(200)) }, nil))
		}
	}
	id := p.DeliveryID
	if !id.Set { // the last frame of several: their delivery's id is not kept
		id = amqp.Some(l.count)
	}
	l.count++
	c.send(channel, &amqp.Disposition{Role: amqp.RoleReceiver, First: id.Value, Settled: true, State: amqp.StateAccepted})
}

func (c *floorConn) deliver(channel uint16, s *floorSession, l *floorLink) {
	token := newUUID()
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
