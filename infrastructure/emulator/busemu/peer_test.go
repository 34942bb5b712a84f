package busemu

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// peer is a client that can violate the protocol.
type peer struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func newPeer(t testing.TB, srv *Server) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	return &peer{t, nc, bufio.NewReader(nc)}
}

func (p *peer) write(b []byte) { _, _ = p.nc.Write(b) } // the broker may have closed the connection

func (p *peer) send(channel uint16, performative amqp.Performative, payload ...byte) {
	b, mark := amqp.BeginFrame(nil, amqp.FrameAMQP, channel)
	p.write(amqp.EndFrame(append(performative.Append(b), payload...), mark))
}

// opening is everything that a client sends up to its Open, in one piece.
func opening() []byte {
	b := amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL)
	b = amqp.AppendFrame(b, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00" + DefaultKeyName + "\x00" + DefaultKey)})
	b = amqp.AppendProtocolHeader(b, amqp.ProtocolAMQP)
	return amqp.AppendFrame(b, amqp.FrameAMQP, 0, &amqp.Open{ContainerID: "peer", MaxFrameSize: 65536, ChannelMax: 65535})
}

// open opens the connection with all rights, and a session on channel 0.
func (p *peer) open() *peer {
	p.t.Helper()
	p.write(opening())
	p.send(0, &amqp.Begin{IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: 4294967295})
	for _, want := range []uint64{amqp.CodeSASLMechanisms, amqp.CodeSASLOutcome, amqp.CodeOpen, amqp.CodeBegin} {
		p.expect(want)
	}
	return p
}

// next reads the next performative; nil and the error at the end of the stream.
func (p *peer) next() (amqp.Performative, []byte, error) {
	for {
		head, err := p.r.Peek(amqp.FrameHeaderSize)
		if err != nil {
			return nil, nil, err
		}
		if string(head[:4]) == "AMQP" {
			_, _ = p.r.Discard(amqp.FrameHeaderSize)
			continue
		}
		h, err := amqp.ParseFrameHeader(head)
		if err != nil {
			p.t.Fatalf("the broker wrote a bad frame header: %v", err)
		}
		frame := make([]byte, h.Size)
		if _, err := io.ReadFull(p.r, frame); err != nil {
			return nil, nil, err
		}
		if len(frame) == amqp.FrameHeaderSize {
			continue
		}
		performative, payload, err := amqp.ParsePerformative(frame[amqp.FrameHeaderSize:])
		if err != nil {
			p.t.Fatalf("the broker wrote a bad frame: %v", err)
		}
		return performative, payload, nil
	}
}

// expect reads up to a performative of this code and returns it.
func (p *peer) expect(code uint64) amqp.Performative {
	p.t.Helper()
	for {
		got, _, err := p.next()
		if err != nil {
			p.t.Fatalf("waiting for 0x%02x: %v", code, err)
		}
		if c, _ := amqp.PerformativeCode(got.Append(nil)); c == code {
			return got
		}
	}
}

// closedWith reads up to a Close and returns its condition; empty if the stream
// ended without one.
func (p *peer) closedWith() amqp.Symbol {
	p.t.Helper()
	for {
		got, _, err := p.next()
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				p.t.Fatal("the broker neither closed nor hung up")
			}
			return ""
		}
		if c, ok := got.(*amqp.Close); ok {
			if c.Error == nil {
				return "none"
			}
			return c.Error.Condition
		}
	}
}

func (p *peer) attachSender(handle uint32, address string) {
	p.send(0, &amqp.Attach{Name: address, Handle: handle, Target: &amqp.Target{Address: amqp.Some(address)}, Source: &amqp.Source{}, InitialDeliveryCount: amqp.Some(uint32(0))})
}

func (p *peer) attachReceiver(handle uint32, address string) {
	p.send(0, &amqp.Attach{
		Name: "r-" + address, Handle: handle, Role: amqp.RoleReceiver, RcvSettleMode: amqp.Some(amqp.ReceiverSecond),
		Source: &amqp.Source{Address: amqp.Some(address)}, Target: &amqp.Target{},
	})
}

func (p *peer) transfer(handle, id uint32, body []byte) {
	p.send(0, &amqp.Transfer{Handle: handle, DeliveryID: amqp.Some(id), DeliveryTag: []byte{byte(id), byte(id >> 8)}, MessageFormat: amqp.Some(uint32(0))},
		amqp.AppendData(nil, body)...)
}
