package servicebus

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// answer replaces the outcome of a delivery. The zero answer does not change it.
type answer struct {
	lose   bool        // the outcome is lost
	reject amqp.Symbol // the message is rejected with this condition instead
	detach amqp.Symbol // the link ends with this condition instead
	state  []byte      // the delivery has this encoded state instead
}

// script changes outcomes between the broker and the client. The broker has accepted the messages, so its
// duplicate detection drops repeats.
type script struct {
	mu     sync.Mutex // guards all of it
	decide func(payload []byte) answer
	asked  int
	batch  any // maximum batch size in the attach frame; nil: unchanged
}

func (s *script) set(decide func(payload []byte) answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide = decide
}

func (s *script) answer(payload []byte) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.decide == nil {
		return answer{}
	}
	return s.decide(payload)
}

// scripted is the connection of a client with a script between client and broker.
type scripted struct {
	net.Conn
	script *script

	reading struct { // by the client's reader only
		in, out []byte
	}
	writing []byte // only used by the client's writer: a partial frame

	mu         sync.Mutex // guards what follows
	links      map[link16]string
	brokers    map[string]link16 // by link name: the broker's handle
	deliveries map[link16][]byte // payload by channel and delivery id
	open       map[link16]uint32 // delivery id of the transfer in progress, by link
	gone       map[link16]bool   // links of the client that a script has ended
	answered   map[link16]bool   // links whose end the broker will answer, which the client has heard of
}

// link16 is a channel and a handle, or a channel and a delivery id.
type link16 struct {
	channel uint16
	number  uint32
}

func newScripted(c net.Conn, s *script) *scripted {
	return &scripted{
		Conn: c, script: s, links: map[link16]string{}, brokers: map[string]link16{},
		deliveries: map[link16][]byte{}, open: map[link16]uint32{}, gone: map[link16]bool{}, answered: map[link16]bool{},
	}
}

// frames calls visit for each complete frame of b and returns the rest. Protocol headers, which begin with
// "AMQP", have the size of a frame header.
func frames(b []byte, visit func(frame []byte)) []byte {
	for len(b) >= amqp.FrameHeaderSize {
		n := amqp.FrameHeaderSize
		if !bytes.HasPrefix(b, []byte("AMQP")) {
			h, err := amqp.ParseFrameHeader(b)
			if err != nil {
				panic(err)
			}
			n = int(h.Size)
		}
		if len(b) < n {
			break
		}
		visit(b[:n])
		b = b[n:]
	}
	return b
}

// decoded returns the channel, performative and payload of a frame; nil for an empty frame.
func decoded(frame []byte) (uint16, amqp.Performative, []byte) {
	if bytes.HasPrefix(frame, []byte("AMQP")) || len(frame) == amqp.FrameHeaderSize || frame[5] != byte(amqp.FrameAMQP) {
		return 0, nil, nil
	}
	h, err := amqp.ParseFrameHeader(frame)
	if err != nil {
		panic(err)
	}
	p, payload, err := amqp.ParsePerformative(frame[int(h.Doff)*4:])
	if err != nil {
		panic(err)
	}
	return h.Channel, p, payload
}

// Write forwards the frames of the client and records its transfers.
func (c *scripted) Write(b []byte) (int, error) {
	var out []byte
	c.writing = append(c.writing, b...)
	rest := frames(c.writing, func(frame []byte) {
		c.sending(frame)
		out = append(out, frame...)
	})
	c.writing = append([]byte(nil), rest...)
	if len(out) > 0 {
		if _, err := c.Conn.Write(out); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// sending records a frame of the client.
func (c *scripted) sending(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	channel, p, payload := decoded(frame)
	switch p := p.(type) {
	case *amqp.Attach:
		if p.Target != nil && p.Target.Address.Value == "contacts" {
			c.links[link16{channel, p.Handle}] = p.Name
		}
	case *amqp.Transfer:
		l := link16{channel, p.Handle}
		if _, ok := c.links[l]; !ok {
			return
		}
		if p.DeliveryID.Set {
			c.open[l] = p.DeliveryID.Value
		}
		d := link16{channel, c.open[l]}
		c.deliveries[d] = append(c.deliveries[d], payload...)
	case *amqp.Detach:
		if l := (link16{channel, p.Handle}); c.gone[l] {
			delete(c.gone, l)
			c.answered[c.brokers[c.links[l]]] = true
		}
	}
}

// Read forwards the frames of the broker, changed by the script.
func (c *scripted) Read(b []byte) (int, error) {
	for len(c.reading.out) == 0 {
		buf := make([]byte, 64<<10)
		n, err := c.Conn.Read(buf)
		if n == 0 {
			return 0, err
		}
		c.reading.in = append(c.reading.in, buf[:n]...)
		rest := frames(c.reading.in, func(frame []byte) { c.reading.out = append(c.reading.out, c.arriving(frame)...) })
		c.reading.in = append([]byte(nil), rest...)
	}
	n := copy(b, c.reading.out)
	c.reading.out = c.reading.out[n:]
	return n, nil
}

// arriving returns the replacement of a frame of the broker.
func (c *scripted) arriving(frame []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	channel, p, _ := decoded(frame)
	switch p := p.(type) {
	case *amqp.Attach:
		c.brokers[p.Name] = link16{channel, p.Handle}
		if c.script.batch != nil {
			p.Properties = amqp.Map{{Key: amqp.Symbol("com.microsoft:max-message-batch-size"), Value: c.script.batch}}
			return amqp.AppendFrame(nil, amqp.FrameAMQP, channel, p)
		}
	case *amqp.Detach:
		if l := (link16{channel, p.Handle}); c.answered[l] {
			delete(c.answered, l)
			return nil
		}
	case *amqp.Disposition:
		return c.answers(channel, p, frame)
	}
	return frame
}

func (c *scripted) answers(channel uint16, p *amqp.Disposition, frame []byte) []byte {
	last := p.First
	if p.Last.Set {
		last = p.Last.Value
	}
	if _, ours := c.deliveries[link16{channel, p.First}]; !ours {
		return frame
	}
	var out []byte
	for id := p.First; id <= last; id++ {
		d := link16{channel, id}
		a := c.script.answer(c.deliveries[d])
		delete(c.deliveries, d)
		switch {
		case a.lose:
		case a.detach != "":
			for client, name := range c.links {
				if client.channel == channel && !c.gone[client] {
					c.gone[client] = true
					out = amqp.AppendFrame(out, amqp.FrameAMQP, channel, &amqp.Detach{Handle: c.brokers[name].number, Closed: true, Error: &amqp.Error{Condition: a.detach}})
				}
			}
		default:
			one := *p
			one.First, one.Last = id, amqp.Optional[uint32]{}
			if a.state != nil {
				one.State = a.state
			}
			if a.reject != "" {
				one.State = amqp.Rejected(&amqp.Error{Condition: a.reject, Description: "as the script says"})
			}
			out = amqp.AppendFrame(out, amqp.FrameAMQP, channel, &one)
		}
	}
	return out
}

// inScript calls inWorld with a script in the connections of the client.
func inScript(t *testing.T, test func(t *testing.T, w *world, s *script)) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := &script{}
		w.mu.Lock()
		w.script = s
		w.mu.Unlock()
		test(t, w, s)
	})
}
