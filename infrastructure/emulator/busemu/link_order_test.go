package busemu

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// grant gives a receiver's link credit, and the session a window.
func (p *peer) grant(handle, count, credit, next, window uint32, drain bool) {
	p.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some(next), IncomingWindow: window, OutgoingWindow: 100,
		Handle: amqp.Some(handle), DeliveryCount: amqp.Some(count), LinkCredit: amqp.Some(credit), Drain: drain,
	})
}

// quiet fails the test if the broker sends a frame of this kind before it
// answers an echo on the session.
func (p *peer) quiet(code uint64) {
	p.t.Helper()
	p.send(0, &amqp.Flow{NextIncomingID: amqp.Some(uint32(0)), Echo: true})
	for {
		got, _, err := p.next()
		if err != nil {
			p.t.Fatal(err)
		}
		c, _ := amqp.PerformativeCode(got.Append(nil))
		if c == code {
			p.t.Fatalf("unexpected %T", got)
		}
		if flow, ok := got.(*amqp.Flow); ok && !flow.Handle.Set {
			return
		}
	}
}

// TestPeerWindowLimitsFrames: the broker sends no more frames than the session's window
// allows.
func TestPeerWindowLimitsFrames(t *testing.T) {
	srv := startT(t, queues("q"))
	for range 10 {
		check(t, srv.Send(t.Context(), "q", Message{Body: []byte("x")}))
	}
	p := newPeer(t, srv).open()
	p.attachReceiver(0, "q")
	p.expect(amqp.CodeAttach)
	p.grant(0, 0, 100, 0, 3, false)
	for range 3 {
		p.expect(amqp.CodeTransfer)
	}
	// An echo on the session would open the window, so the link's state is requested instead.
	p.send(0, &amqp.Flow{NextIncomingID: amqp.Some(uint32(3)), IncomingWindow: 0, Handle: amqp.Some(uint32(0)), DeliveryCount: amqp.Some(uint32(3)), LinkCredit: amqp.Some(uint32(97)), Echo: true})
	got, _, err := p.next()
	check(t, err)
	if _, ok := got.(*amqp.Flow); !ok {
		t.Fatalf("%T beyond the window", got)
	}
	p.grant(0, 3, 97, 3, 2, false)
	for range 2 {
		p.expect(amqp.CodeTransfer)
	}
}

// TestDrainAdvancesDeliveryCount: the answer to a drain advances the delivery count by the
// dropped credit.
func TestDrainAdvancesDeliveryCount(t *testing.T) {
	srv := startT(t, queues("q"))
	check(t, srv.Send(t.Context(), "q", Message{Body: []byte("x")}))
	p := newPeer(t, srv).open()
	p.attachReceiver(0, "q")
	p.expect(amqp.CodeAttach)
	p.grant(0, 0, 50, 0, 100, true)
	p.expect(amqp.CodeTransfer)
	flow := p.expect(amqp.CodeFlow).(*amqp.Flow)
	if !flow.Drain || flow.LinkCredit.Value != 0 || flow.DeliveryCount.Value != 50 {
		t.Errorf("drain answered by %+v", flow)
	}
}

// TestDetachWaitsForAnswers: messages sent before a Detach are answered before it, even while
// they are being written to the disk.
func TestDetachWaitsForAnswers(t *testing.T) {
	for name, o := range map[string]*Options{"memory": queues("q"), "durable": {DataDir: "d", FS: vfs.NewMem(), Topology: queues("q").Topology}} {
		t.Run(name, func(t *testing.T) {
			srv := startT(t, o)
			p := newPeer(t, srv).open()
			for range 20 {
				p.attachSender(0, "q")
				p.expect(amqp.CodeFlow)
				var b []byte
				for id := range uint32(3) {
					var mark int
					b, mark = amqp.BeginFrame(b, amqp.FrameAMQP, 0)
					b = (&amqp.Transfer{DeliveryID: amqp.Some(id), DeliveryTag: []byte{1}}).Append(b)
					b = amqp.EndFrame(amqp.AppendData(b, []byte("x")), mark)
				}
				b = append(b, frameOf(0, (&amqp.Detach{Closed: true}).Append(nil))...)
				p.write(b)
				answered := uint32(0)
				for answered < 3 {
					d := p.expect(amqp.CodeDisposition).(*amqp.Disposition)
					answered += d.Last.Or(d.First) - d.First + 1
				}
				p.expect(amqp.CodeDetach)
				p.quiet(amqp.CodeDisposition)
			}
		})
	}
}

// TestSettlementThenDetach: a settlement in flight to the disk is executed and not answered
// when the link is detached.
func TestSettlementThenDetach(t *testing.T) {
	srv := startT(t, &Options{DataDir: "d", FS: vfs.NewMem(), Topology: queues("q").Topology})
	p := newPeer(t, srv).open()
	const rounds = 20
	for i := range uint32(rounds) {
		check(t, srv.Send(t.Context(), "q", Message{Body: []byte("x")}))
		p.attachReceiver(0, "q")
		p.expect(amqp.CodeAttach)
		p.grant(0, 0, 1, i, 100, false)
		transfer := p.expect(amqp.CodeTransfer).(*amqp.Transfer)
		b := frameOf(0, (&amqp.Disposition{Role: amqp.RoleReceiver, First: transfer.DeliveryID.Value, State: amqp.StateAccepted}).Append(nil))
		p.write(append(b, frameOf(0, (&amqp.Detach{Closed: true}).Append(nil))...))
		p.expect(amqp.CodeDetach)
		p.quiet(amqp.CodeDisposition)
	}
	// Only the message of the last settlement may remain.
	if c := must(srv.Counters("q"))(t); c.Delivered != rounds {
		t.Errorf("%+v", c)
	}
}

// TestDetachDuringEntityDeletion: a detaching sender that waits for its last answers is
// finished when the broker ends the link. Its handle is free again.
func TestDetachDuringEntityDeletion(t *testing.T) {
	srv := startT(t, queues("q", "other"))
	srv.Control(OpSend, Times(1, Fault{Delay: time.Hour}))
	p := newPeer(t, srv).open()
	p.attachSender(0, "q")
	p.expect(amqp.CodeFlow)
	b, mark := amqp.BeginFrame(nil, amqp.FrameAMQP, 0)
	b = (&amqp.Transfer{DeliveryID: amqp.Some(uint32(0)), DeliveryTag: []byte{1}}).Append(b)
	p.write(amqp.EndFrame(amqp.AppendData(b, []byte("x")), mark))
	p.send(0, &amqp.Detach{Closed: true})
	p.quiet(amqp.CodeDetach)
	check(t, srv.Detach("q", &Error{Condition: DetachForced, Description: "for the test"}))
	p.expect(amqp.CodeDetach)
	p.attachSender(0, "other")
	p.expect(amqp.CodeAttach)
}
