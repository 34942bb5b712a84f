package servicebus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu/amqp"
)

// TestOutcomesInEveryForm: AMQP has several ways to write one outcome.
func TestOutcomesInEveryForm(t *testing.T) {
	malformed := &amqp.Error{Condition: "amqp:invalid-field", Description: string(bytes.Repeat([]byte("long "), 100)), Info: amqp.Map{{Key: amqp.Symbol("x"), Value: "y"}}}
	for name, tt := range map[string]struct {
		state []byte
		want  string // "" = accepted
	}{
		"accepted, list8":         {[]byte{0, 0x53, 0x24, 0xc0, 1, 0}, ""},
		"accepted, list32":        {[]byte{0, 0x53, 0x24, 0xd0, 0, 0, 0, 4, 0, 0, 0, 0}, ""},
		"accepted, long":          {[]byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x24, 0x45}, ""},
		"released":                {amqp.StateReleased, "outage released"},
		"released, list8":         {[]byte{0, 0x53, 0x26, 0xc0, 1, 0}, "outage released"},
		"released, long":          {[]byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x26, 0x45}, "outage released"},
		"modified":                {(&amqp.State{Code: amqp.CodeModified}).Append(nil), "outage modified"},
		"modified, undeliverable": {(&amqp.State{Code: amqp.CodeModified, DeliveryFailed: true, UndeliverableHere: true, MessageAnnotations: malformed.Info}).Append(nil), "outage modified"},
		"received":                {(&amqp.State{Code: amqp.CodeReceived}).Append(nil), "outage no_outcome"},
		"null":                    {[]byte{0x40}, "outage no_outcome"},
		"rejected without error":  {amqp.Rejected(nil), "refused rejected"},
		"rejected":                {amqp.Rejected(malformed), "refused malformed"},
		"unknown state":           {[]byte{0, 0x53, 0x34, 0x45}, "outage no_outcome"},
		"no state":                {[]byte{0x50, 7}, "outage no_outcome"},
	} {
		t.Run(name, func(t *testing.T) {
			inScript(t, func(t *testing.T, w *world, s *script) {
				s.set(func([]byte) answer { return answer{state: tt.state} })
				p := w.publisher(t, nil)
				for _, groups := range [][]relay.Group{{group("a", 10)}, {group("a", 10, 10)}} {
					if err := p.Publish(t.Context(), groups); tt.want != "" {
						wantFailed(t, err, "a after 0: "+tt.want)
					} else if err != nil {
						t.Error(err)
					}
				}
				if n := w.dialled(); n != 1 {
					t.Errorf("%d connections, want 1", n)
				}
			})
		})
	}
}

// pieces is a connection from which frames arrive in pieces of a size.
type pieces struct {
	net.Conn
	b    []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.b)
	p.b = p.b[n:]
	return n, nil
}

// through returns what the client reads of stream when it arrives in pieces of size.
func through(stream []byte, size int) ([]byte, error) {
	conn := watch(&pieces{b: stream, size: size})
	var all []byte
	b := make([]byte, 512)
	for {
		n, err := conn.Read(b)
		all = append(all, b[:n]...)
		if err != nil {
			return all, err
		}
	}
}

// dialogue is frames of a broker: protocol headers, a frame of no body, a refused link, a
// message, answers of both roles.
func dialogue() []byte {
	b := []byte("AMQP\x03\x01\x00\x00AMQP\x00\x01\x00\x00")
	b = amqp.AppendEmptyFrame(b)
	for _, p := range []amqp.Performative{
		&amqp.Begin{RemoteChannel: amqp.Some(uint16(0)), IncomingWindow: 5000, OutgoingWindow: 5000},
		&amqp.Attach{Name: "gone", Handle: 3, Role: amqp.RoleReceiver, Source: &amqp.Source{}},
		&amqp.Detach{Handle: 3, Closed: true, Error: &amqp.Error{Condition: "amqp:invalid-field"}},
		&amqp.Attach{Name: "link", Handle: 3, Role: amqp.RoleReceiver, Source: &amqp.Source{}, Target: &amqp.Target{}},
		&amqp.Disposition{Role: amqp.RoleReceiver, First: 1, Last: amqp.Some(uint32(300)), Settled: true, State: amqp.StateAccepted},
		&amqp.Disposition{Role: amqp.RoleReceiver, First: 301, Settled: true, State: amqp.StateReleased},
		&amqp.Disposition{Role: amqp.RoleSender, First: 301, Settled: true, State: amqp.StateReleased},
		&amqp.Disposition{Role: amqp.RoleReceiver, First: 302, State: amqp.Rejected(&amqp.Error{Condition: "amqp:not-allowed"})},
		&amqp.Detach{Handle: 3, Closed: true, Error: &amqp.Error{Condition: "amqp:invalid-field"}},
	} {
		b = amqp.AppendFrame(b, amqp.FrameAMQP, 1, p)
	}
	b, mark := amqp.BeginFrame(b, amqp.FrameAMQP, 1)
	b = (&amqp.Transfer{Handle: 3, DeliveryID: amqp.Some(uint32(1))}).Append(b)
	return amqp.EndFrame(append(b, make([]byte, 2000)...), mark)
}

// words tells what the frames of a stream say.
func words(tb testing.TB, stream []byte) (said []string) {
	tb.Helper()
	frames(stream, func(frame []byte) {
		switch _, p, _ := decoded(frame); p := p.(type) {
		case *amqp.Disposition:
			state, err := amqp.DecodeState(p.State)
			if err != nil {
				tb.Fatal(err)
			}
			said = append(said, fmt.Sprintf("disposition %v %d %d %v %x %v", p.Role, p.First, p.Last.Or(0), p.Settled, state.Code, carriedBy(state.Error)))
		case *amqp.Detach:
			said = append(said, fmt.Sprintf("detach %d %v %v", p.Handle, p.Closed, carriedBy(p.Error)))
		}
	})
	return said
}

func carriedBy(e *amqp.Error) bool {
	if e == nil {
		return false
	}
	_, ok := e.Info.Get(carried)
	return ok && string(e.Condition) == string(carrier)
}

// TestAnswersAreTheSameInPieces: frames arrive in any pieces.
func TestAnswersAreTheSameInPieces(t *testing.T) {
	want := []string{
		"detach 3 true true",
		"disposition true 1 300 true 24 false",
		"disposition true 301 0 true 25 true",
		"disposition false 301 0 true 26 false",
		"disposition true 302 0 false 25 true",
		"detach 3 true false",
	}
	stream := dialogue()
	for size := 1; size <= len(stream); size++ {
		got, err := through(stream, size)
		if !errors.Is(err, io.EOF) || fmt.Sprint(words(t, got)) != fmt.Sprint(want) || len(got) <= len(stream) {
			t.Fatalf("pieces of %d bytes: %v\n%q\nwant\n%q", size, err, words(t, got), want)
		}
	}
}

// TestFramesThatNeedNoLookPass: byte for byte, and without an allocation.
func TestFramesThatNeedNoLookPass(t *testing.T) {
	var stream []byte
	for i := range uint32(20) {
		stream = amqp.AppendFrame(stream, amqp.FrameAMQP, 1, &amqp.Disposition{Role: amqp.RoleReceiver, First: i, Settled: true, State: amqp.StateAccepted})
		stream = amqp.AppendFrame(stream, amqp.FrameAMQP, 1, &amqp.Flow{Handle: amqp.Some(i)})
	}
	if got, _ := through(stream, len(stream)); !bytes.Equal(got, stream) {
		t.Errorf("read %x, want %x", got, stream)
	}
	source := &pieces{size: len(stream)}
	conn, b := watch(source), make([]byte, len(stream))
	if n := testing.AllocsPerRun(100, func() {
		source.b = stream
		for n := 0; n < len(stream); {
			read, _ := conn.Read(b)
			n += read
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d bytes, want none", n, len(stream))
	}
}

// FuzzAnswers: no stream makes the connection panic, it reads the same in any pieces, and
// no disposition gets through that the client would take for accepted though it is not.
func FuzzAnswers(f *testing.F) {
	f.Add(dialogue(), 7)
	f.Add(amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &amqp.Disposition{Role: amqp.RoleReceiver, State: amqp.StateReleased}), 1)
	f.Add([]byte{0, 0, 0, 20, 2, 0, 0, 0, 0, 0x53, 0x15, 0xc0, 7, 5, 0x41, 0x43, 0x40, 0x41, 0x40, 0}, 3)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		whole, err := through(stream, len(stream)+1)
		got, err2 := through(stream, 1+max(size, 0)%600)
		if errors.Is(err, errFrame) != errors.Is(err2, errFrame) || err == nil || errors.Is(err, io.EOF) && !bytes.Equal(whole, got) {
			t.Fatalf("in one piece %x, %v; in pieces %x, %v", whole, err, got, err2)
		}
		for len(whole) >= amqp.FrameHeaderSize {
			if bytes.HasPrefix(whole, []byte("AMQP")) {
				whole = whole[amqp.FrameHeaderSize:]
				continue
			}
			h, err := amqp.ParseFrameHeader(whole)
			if err != nil || int(h.Size) > len(whole) {
				return
			}
			var p amqp.Disposition
			if body := whole[amqp.FrameHeaderSize:h.Size]; len(body) > 2 && body[2] == amqp.CodeDisposition {
				if _, err := amqp.DecodePerformative(body, &p); err == nil && p.Role == amqp.RoleReceiver {
					if s, err := amqp.DecodeState(p.State); err == nil && s.Code != amqp.CodeAccepted && s.Code != amqp.CodeRejected {
						t.Fatalf("a state with code %x got through", s.Code)
					}
				}
			}
			whole = whole[h.Size:]
		}
	})
}
