package busemu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/tests/testenv"
)

// frameOf is a frame around raw bytes.
func frameOf(channel uint16, body []byte) []byte {
	b, mark := amqp.BeginFrame(nil, amqp.FrameAMQP, channel)
	return amqp.EndFrame(append(b, body...), mark)
}

// works fails the test unless another client can send and receive.
func works(t *testing.T, srv *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(t, srv.Healthy(ctx))
	client := srv.Client()
	defer func() { _ = client.Close(ctx) }()
	sender := must(client.NewSender("other", nil))(t)
	check(t, sender.SendMessage(ctx, body("ok"), nil))
	receiver := must(client.NewReceiverForQueue("other", nil))(t)
	m := must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
	check(t, receiver.CompleteMessage(ctx, m, nil))
}

// A full listener accepts a new connection in place of the oldest one without a handshake. Those
// that have finished it stay.
func TestFullListenerDisplacesUnfinishedHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		listener, err := network.Listen("bus:5672")
		if err != nil {
			t.Fatal(err)
		}
		srv, err := Start(&Options{Listener: listener, AdminAddr: noAddr})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		dial := func() net.Conn {
			conn, err := network.DialContext(t.Context(), "tcp", "bus:5672")
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			return conn
		}
		begin := &amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10, HandleMax: 10}
		finished := make([]*peer, 200) // a part of all connections is compared, with one of these almost surely
		for i := range finished {
			nc := dial()
			defer nc.Close()
			finished[i] = &peer{t, nc, bufio.NewReader(nc)}
			go finished[i].write(append(opening(), frameOf(0, begin.Append(nil))...))
			finished[i].expect(amqp.CodeBegin)
		}
		time.Sleep(time.Millisecond) // the others are younger
		silent := make([]net.Conn, maxConnections+1-len(finished))
		for i := range silent {
			silent[i] = dial()
			defer silent[i].Close()
		}
		displaced := 0
		for _, conn := range silent {
			_ = conn.SetReadDeadline(time.Now().Add(time.Microsecond))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				displaced++
			}
		}
		if displaced != 1 {
			t.Errorf("%d connections without a handshake are displaced, want 1", displaced)
		}
		for _, p := range finished {
			go p.send(1, begin)
			p.expect(amqp.CodeBegin)
		}
	})
}

func TestHostileFrames(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	huge := make([]byte, 8)
	binary.BigEndian.PutUint32(huge, 1<<30)
	huge[4] = 2
	for name, c := range map[string]struct {
		raw  []byte
		want amqp.Symbol
	}{
		"garbage":                 {bytes.Repeat([]byte{0xff}, 100), condFramingError},
		"frame size below header": {[]byte{0, 0, 0, 4, 2, 0, 0, 0}, condFramingError},
		"frame of a gigabyte":     {huge, condFramingError},
		"data offset past end":    {[]byte{0, 0, 0, 8, 9, 0, 0, 0}, condFramingError},
		"unknown frame type":      {[]byte{0, 0, 0, 8, 2, 7, 0, 0}, condFramingError},
		"SASL frame":              {amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "ANONYMOUS"}), condFramingError},
		"body that is no type":    {frameOf(0, []byte{1, 2, 3}), condDecodeError},
		"unknown performative":    {frameOf(0, []byte{0, 0x53, 0x99, 0x45}), condDecodeError},
		"truncated attach":        {frameOf(0, (&amqp.Attach{Name: "n"}).Append(nil)[:6]), condDecodeError},
		"nested described types":  {frameOf(0, append([]byte{0, 0x53, amqp.CodeFlow, 0xc0, 250, 1}, bytes.Repeat([]byte{0}, 249)...)), condDecodeError},
		"channel without session": {frameOf(9, (&amqp.Flow{}).Append(nil)), condFramingError},
		"channel above the max":   {frameOf(60000, (&amqp.Begin{}).Append(nil)), condFramingError},
		"second Begin":            {frameOf(0, (&amqp.Begin{}).Append(nil)), condNotAllowed},
		"second Open":             {frameOf(0, (&amqp.Open{ContainerID: "x"}).Append(nil)), condNotAllowed},
		"handle above the max":    {frameOf(0, (&amqp.Attach{Name: "n", Handle: 1 << 20}).Append(nil)), condFramingError},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, srv).open()
			p.write(c.raw)
			if got := p.closedWith(); got != c.want {
				t.Errorf("closed with %q, want %q", got, c.want)
			}
		})
	}
	works(t, srv)
}

// TestHostileSessions: a violation in one session ends that session only.
func TestHostileSessions(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	for name, c := range map[string]struct {
		act  func(p *peer)
		want amqp.Symbol
	}{
		"transfer on no handle":  {func(p *peer) { p.transfer(5, 0, nil) }, condUnattachedHandle},
		"flow on no handle":      {func(p *peer) { p.send(0, &amqp.Flow{Handle: amqp.Some(uint32(5))}) }, condUnattachedHandle},
		"detach of no handle":    {func(p *peer) { p.send(0, &amqp.Detach{Handle: 5}) }, condUnattachedHandle},
		"handle in use":          {func(p *peer) { p.attachSender(0, "q"); p.attachSender(0, "q") }, condHandleInUse},
		"transfer on a receiver": {func(p *peer) { p.attachReceiver(0, "q"); p.transfer(0, 0, nil) }, condErrantLink},
		"bad delivery state": {func(p *peer) {
			p.attachReceiver(0, "q")
			p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, State: []byte{0, 0x53, 0x99, 0x45}})
		}, condDecodeError},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, srv).open()
			c.act(p)
			end := p.expect(amqp.CodeEnd).(*amqp.End)
			if end.Error == nil || end.Error.Condition != c.want {
				t.Errorf("ended with %v, want %s", end.Error, c.want)
			}
			// Until the peer's End all frames are ignored; then the channel is free.
			p.transfer(0, 9, nil)
			p.send(0, &amqp.End{})
			p.send(0, &amqp.Begin{IncomingWindow: 1, OutgoingWindow: 1})
			p.expect(amqp.CodeBegin)
		})
	}
	works(t, srv)
}

// TestHostileLinks: a violation on one link detaches that link only.
func TestHostileLinks(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	for name, c := range map[string]struct {
		act  func(p *peer)
		want amqp.Symbol
	}{
		"more messages than credit": {func(p *peer) {
			var b []byte
			for id := range uint32(3 * incomingCredit) {
				var mark int
				b, mark = amqp.BeginFrame(b, amqp.FrameAMQP, 0)
				b = (&amqp.Transfer{Handle: 0, DeliveryID: amqp.Some(id), DeliveryTag: []byte{1}, Settled: true}).Append(b)
				b = amqp.EndFrame(amqp.AppendData(b, nil), mark)
			}
			p.write(b)
		}, condTransferLimit},
		"transfer without delivery-id": {func(p *peer) { p.send(0, &amqp.Transfer{Handle: 0}) }, condInvalidField},
		"two deliveries mixed": {func(p *peer) {
			p.send(0, &amqp.Transfer{Handle: 0, DeliveryID: amqp.Some(uint32(0)), DeliveryTag: []byte{1}, More: true})
			p.send(0, &amqp.Transfer{Handle: 0, DeliveryID: amqp.Some(uint32(1)), DeliveryTag: []byte{2}})
		}, condInvalidField},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "more messages than credit" {
				// No message is answered, so no credit is granted.
				srv.Control(OpSend, When(Call{Entity: "q"}, Always(Fault{Delay: time.Minute})))
			}
			p := newPeer(t, srv).open()
			p.attachSender(0, "q")
			p.expect(amqp.CodeFlow)
			c.act(p)
			d := p.expect(amqp.CodeDetach).(*amqp.Detach)
			if d.Error == nil || d.Error.Condition != c.want || !d.Closed {
				t.Errorf("detached with %+v, want %s", d, c.want)
			}
		})
	}
	works(t, srv)
}

func TestHostileHandshakes(t *testing.T) {
	srv := startT(t, queues("other"))
	for name, raw := range map[string][]byte{
		"HTTP":               []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"AMQP 0.9.1":         []byte("AMQP\x00\x00\x09\x01"),
		"no SASL":            amqp.AppendProtocolHeader(nil, amqp.ProtocolAMQP),
		"TLS inside AMQP":    amqp.AppendProtocolHeader(nil, amqp.ProtocolTLS),
		"nothing":            nil,
		"half a header":      []byte("AMQ"),
		"unknown mechanism":  amqp.AppendFrame(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL), amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "X"}),
		"wrong key":          amqp.AppendFrame(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL), amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00a\x00b")}),
		"oversize init":      append(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL), 0x7f, 0xff, 0xff, 0xff, 2, 1, 0, 0),
		"tiny max-frame":     append(opening()[:len(opening())-20], bytes.Repeat([]byte{0}, 20)...),
		"AMQP frame in SASL": append(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL), frameOf(0, (&amqp.Open{}).Append(nil))...),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, srv)
			p.write(raw)
			if tcp, ok := p.nc.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			for {
				if _, err := p.r.ReadByte(); err != nil {
					break
				}
			}
		})
	}
	works(t, srv)
}

// TestRandomFrames sends well-formed frames with random contents.
func TestRandomFrames(t *testing.T) {
	rng := testenv.Random(t)
	srv := startT(t, queues("q", "other"))
	for round := range 60 {
		p := newPeer(t, srv)
		b := append(opening(), frameOf(0, (&amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10, HandleMax: 10}).Append(nil))...)
		for range 1 + rng.IntN(40) {
			b = append(b, frameOf(uint16(rng.IntN(2)), randomPerformative(rng).Append(nil))...)
		}
		p.write(b)
		if round%2 == 0 {
			_ = p.nc.Close()
		}
	}
	works(t, srv)
}

func randomPerformative(rng *rand.Rand) amqp.Performative {
	handle := uint32(rng.IntN(3))
	address := []string{"q", "Q", "missing", "$cbs", "q/$management", "", "q/$DeadLetterQueue"}[rng.IntN(7)]
	switch rng.IntN(9) {
	case 0, 1:
		p := &amqp.Attach{Name: fmt.Sprint(rng.IntN(3)), Handle: handle, Role: amqp.Role(rng.IntN(2) == 0)}
		if rng.IntN(5) > 0 {
			p.Source, p.Target = &amqp.Source{Address: amqp.Some(address)}, &amqp.Target{Address: amqp.Some(address)}
		}
		if rng.IntN(3) == 0 {
			p.SndSettleMode = amqp.Some(uint8(rng.IntN(3)))
		}
		return p
	case 2:
		return &amqp.Flow{NextIncomingID: amqp.Some(rng.Uint32N(3)), IncomingWindow: rng.Uint32(), NextOutgoingID: rng.Uint32(), Handle: amqp.Some(handle), LinkCredit: amqp.Some(rng.Uint32()), DeliveryCount: amqp.Some(rng.Uint32N(5)), Drain: rng.IntN(2) == 0, Echo: rng.IntN(2) == 0}
	case 3, 4:
		return &amqp.Transfer{Handle: handle, DeliveryID: amqp.Some(rng.Uint32N(5)), DeliveryTag: []byte{1}, More: rng.IntN(3) == 0, Aborted: rng.IntN(9) == 0, Settled: rng.IntN(2) == 0, MessageFormat: amqp.Some([]uint32{0, amqp.BatchFormat, 7}[rng.IntN(3)])}
	case 5:
		return &amqp.Disposition{Role: amqp.Role(rng.IntN(2) == 0), First: rng.Uint32(), Last: amqp.Some(rng.Uint32()), Settled: rng.IntN(2) == 0, State: amqp.StateAccepted}
	case 6:
		return &amqp.Detach{Handle: handle, Closed: rng.IntN(2) == 0}
	case 7:
		return &amqp.End{}
	default:
		return &amqp.Begin{IncomingWindow: rng.Uint32(), OutgoingWindow: rng.Uint32()}
	}
}
