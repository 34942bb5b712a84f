package busemu

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// inUse returns the memory of the process's objects and stacks, including garbage.
func inUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}

// bounded fails the test if the process needs more than limit bytes more while act runs. That
// includes garbage, which a busy machine collects late. A limit is therefore far above the
// memory in use, and far below that of an unbounded buffer.
func bounded(t *testing.T, limit uint64, act func()) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // because garbage counts
	runtime.GC()
	before, most := inUse(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, inUse())
			}
		}
	}()
	act()
	close(stop)
	<-stopped
	most = max(most, inUse(), before) - before
	t.Logf("%.1f MB at most, %d MB allowed", float64(most)/(1<<20), limit>>20)
	if most > limit {
		t.Errorf("%d MB more were in use, want at most %d MB", most>>20, limit>>20)
	}
}

// TestSlowReader: a receiver with unlimited credit that reads nothing takes bounded memory,
// and others are served meanwhile.
func TestSlowReader(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	const n, size = 1000, 100 << 10
	ctx := context.Background()
	for range n {
		check(t, srv.Send(ctx, "q", Message{Body: make([]byte, size)}))
	}
	p := newPeer(t, srv).open()
	bounded(t, 64<<20, func() {
		p.attachReceiver(0, "q")
		p.send(0, &amqp.Flow{NextIncomingID: amqp.Some(uint32(0)), IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30, Handle: amqp.Some(uint32(0)), DeliveryCount: amqp.Some(uint32(0)), LinkCredit: amqp.Some(uint32(1 << 30))})
		time.Sleep(200 * time.Millisecond) // let it fill the socket's buffers
		works(t, srv)
	})
	counters := must(srv.Counters("q"))(t)
	if counters.Delivered >= n {
		t.Errorf("all %d messages of %d kB were taken out for a peer that does not read", n, size>>10)
	}
	// When it reads, it gets everything.
	got := 0
	for got < n {
		performative, _, err := p.next()
		if err != nil {
			t.Fatalf("after %d messages: %v", got, err)
		}
		if transfer, ok := performative.(*amqp.Transfer); ok && !transfer.More {
			got++
		}
	}
}

// TestSlowReaderOfAnswers: from a peer that sends requests and reads no answers, the broker
// stops reading.
func TestSlowReaderOfAnswers(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	p := newPeer(t, srv).open()
	_ = p.nc.SetWriteDeadline(time.Now().Add(time.Second))
	echo := frameOf(0, (&amqp.Flow{NextIncomingID: amqp.Some(uint32(0)), Echo: true}).Append(nil))
	flood := bytes.Repeat(echo, 1000)
	bounded(t, 64<<20, func() {
		total := 0
		for {
			n, err := p.nc.Write(flood)
			if total += n; err != nil {
				break
			}
			if total > 256<<20 {
				t.Fatal("256 MB of requests were taken without an answer being read")
			}
		}
		works(t, srv)
	})
}

// TestManyConnections: connections that are opened and dropped at any point leave
// nothing behind.
func TestManyConnections(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	works(t, srv)
	before := runtime.NumGoroutine()
	script := opening()
	script = append(script, frameOf(0, (&amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10, HandleMax: 10}).Append(nil))...)
	script = append(script, frameOf(0, (&amqp.Attach{Name: "s", Target: &amqp.Target{Address: amqp.Some("q")}}).Append(nil))...)
	script = append(script, frameOf(0, (&amqp.Attach{Name: "r", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: amqp.Some("q")}}).Append(nil))...)
	bounded(t, 64<<20, func() {
		var wg sync.WaitGroup
		for worker := range 20 {
			wg.Go(func() {
				for i := range 50 {
					nc, err := net.Dial("tcp", srv.Addr())
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = nc.Write(script[:(worker*50+i)*len(script)/1000])
					_ = nc.Close()
				}
			})
		}
		wg.Wait()
	})
	deadline := time.Now().Add(time.Minute)
	for srv.Connections() > 0 || runtime.NumGoroutine() > before+5 {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections and %d goroutines are left, %d before", srv.Connections(), runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
	works(t, srv)
}

// TestManyOpenConnections: reports and limits the memory of each of 1,000 idle connections
// with a link.
func TestManyOpenConnections(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	const n = 1000
	bounded(t, n*64<<10, func() {
		peers := make([]*peer, n)
		for i := range peers {
			peers[i] = newPeer(t, srv)
			peers[i].r = bufio.NewReaderSize(peers[i].nc, 512) // the test's own memory counts too
			peers[i].open().attachSender(0, "q")
			peers[i].expect(amqp.CodeFlow)
		}
		works(t, srv)
		for _, p := range peers {
			_ = p.nc.Close()
		}
	})
	deadline := time.Now().Add(time.Minute)
	for srv.Connections() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are left", srv.Connections())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestPeekFlood: a peer that requests large replies without credit for them gets server-busy
// before they take much memory.
func TestPeekFlood(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	for range 20 {
		check(t, srv.Send(t.Context(), "q", Message{Body: make([]byte, 200<<10)}))
	}
	p := newPeer(t, srv).open()
	p.attachSender(0, "q/$management")
	p.attachReceiver(1, "q/$management")
	p.expect(amqp.CodeAttach)
	p.expect(amqp.CodeAttach)
	var props amqp.Properties
	props.SetText(amqp.MessageID, "id")
	w := amqp.BeginMapSection(props.Append(nil), amqp.CodeApplicationProperties)
	w.String("operation", "com.microsoft:peek-message")
	request := amqp.AppendValueSection(w.Finish(), amqp.Map{{Key: "from-sequence-number", Value: int64(0)}, {Key: "message-count", Value: int32(100)}})
	const requests = 400
	bounded(t, 96<<20, func() {
		var b []byte
		for id := range uint32(requests) {
			var mark int
			b, mark = amqp.BeginFrame(b, amqp.FrameAMQP, 0)
			b = (&amqp.Transfer{DeliveryID: amqp.Some(id), DeliveryTag: []byte{1}, MessageFormat: amqp.Some(uint32(0))}).Append(b)
			b = amqp.EndFrame(append(b, request...), mark)
		}
		p.write(b)
		for settled := uint32(0); settled < requests; {
			d := p.expect(amqp.CodeDisposition).(*amqp.Disposition)
			settled += d.Last.Or(d.First) - d.First + 1
		}
		works(t, srv)
	})
	// With credit the replies come, the last ones as refusals.
	p.grant(1, 0, requests, 0, 1<<30, false)
	full, busy := 0, 0
	for size := 0; full+busy < requests; {
		performative, payload, err := p.next()
		check(t, err)
		transfer, ok := performative.(*amqp.Transfer)
		if !ok {
			continue
		}
		if size += len(payload); transfer.More {
			continue
		}
		if size > 1000 {
			full++
		} else {
			busy++
		}
		size = 0
	}
	if full < 10 || busy < requests/2 {
		t.Errorf("%d replies and %d refusals", full, busy)
	}
}

// TestEndlessMessages: messages without an end are counted, not kept. Too many incomplete
// messages end the connection.
func TestEndlessMessages(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	part := func(handle, id uint32, size int) []byte {
		b, mark := amqp.BeginFrame(nil, amqp.FrameAMQP, 0)
		b = (&amqp.Transfer{Handle: handle, DeliveryID: amqp.Some(id), DeliveryTag: []byte{1}, More: true}).Append(b)
		return amqp.EndFrame(append(b, make([]byte, size)...), mark)
	}
	t.Run("one", func(t *testing.T) {
		p := newPeer(t, srv).open()
		p.attachSender(0, "q")
		p.expect(amqp.CodeFlow)
		bounded(t, 64<<20, func() {
			frames := bytes.Repeat(part(0, 0, 60<<10), 10)
			for range 400 { // 240 MB
				p.write(frames)
			}
			works(t, srv)
		})
		p.send(0, &amqp.Transfer{Handle: 0})
		d := p.expect(amqp.CodeDisposition).(*amqp.Disposition)
		state, err := amqp.DecodeState(d.State)
		check(t, err)
		if state.Error == nil || state.Error.Condition != condMessageSize {
			t.Errorf("settled with %+v", state)
		}
	})
	t.Run("many", func(t *testing.T) {
		p := newPeer(t, srv).open()
		bounded(t, 128<<20, func() {
			for handle := range uint32(400) {
				p.attachSender(handle, "q")
				for range 4 {
					p.write(part(handle, handle, 60<<10))
				}
			}
			if got := p.closedWith(); got != condResourceLimit && got != "" {
				t.Errorf("closed with %q", got)
			}
			works(t, srv)
		})
	})
}

// TestTokenFlood: a peer without a key that sends long requests for tokens, without credit for the
// replies, takes bounded memory. A reply has the id of its request, which the peer chooses.
func TestTokenFlood(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	p := newPeer(t, srv)
	b := amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL)
	b = amqp.AppendFrame(b, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "ANONYMOUS"})
	b = amqp.AppendProtocolHeader(b, amqp.ProtocolAMQP)
	p.write(amqp.AppendFrame(b, amqp.FrameAMQP, 0, &amqp.Open{ContainerID: "peer", MaxFrameSize: 65536, ChannelMax: 65535}))
	p.send(0, &amqp.Begin{IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: 4294967295})
	p.attachSender(0, "$cbs")
	p.attachReceiver(1, "$cbs")
	p.expect(amqp.CodeAttach)
	p.expect(amqp.CodeAttach)
	var props amqp.Properties
	props.SetText(amqp.MessageID, strings.Repeat("i", 200<<10))
	w := amqp.BeginMapSection(props.Append(nil), amqp.CodeApplicationProperties)
	w.String("operation", "put-token")
	request := amqp.AppendValueSection(w.Finish(), "")
	live := func() uint64 { // without garbage: each request leaves much of it
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for id := range uint32(900) {
		for rest := request; len(rest) > 0; {
			part := rest[:min(len(rest), 60<<10)]
			rest = rest[len(part):]
			p.send(0, &amqp.Transfer{DeliveryID: amqp.Some(id), DeliveryTag: []byte{1}, MessageFormat: amqp.Some(uint32(0)), More: len(rest) > 0}, part...)
		}
	}
	works(t, srv)
	for settled := uint32(0); settled < 900; {
		d := p.expect(amqp.CodeDisposition).(*amqp.Disposition)
		settled += d.Last.Or(d.First) - d.First + 1
		state, err := amqp.DecodeState(d.State)
		check(t, err)
		if state.Error != nil && state.Error.Condition != amqp.Symbol(broker.ServerBusy) {
			t.Fatalf("settled with %+v", state)
		}
		if settled == 900 && state.Error == nil {
			t.Error("no request was refused")
		}
	}
	if more := int64(live() - before); more > 96<<20 {
		t.Errorf("the replies take %d MB", more>>20)
	}
}
