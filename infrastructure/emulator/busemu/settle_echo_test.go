package busemu

import (
	"bytes"
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// TestSettlementEcho: a settlement is confirmed with the applied outcome. Clients compare it
// with the requested one; Java fails the call if they differ.
func TestSettlementEcho(t *testing.T) {
	t.Parallel()
	annotations := amqp.Map{{Key: "k", Value: "v"}}
	dead := &amqp.Error{Condition: "com.microsoft:dead-letter", Info: amqp.Map{{Key: deadLetterReason, Value: "bad"}}}
	for _, c := range []struct {
		name      string
		say, want amqp.State
	}{
		{"complete", amqp.State{Code: amqp.CodeAccepted}, amqp.State{Code: amqp.CodeAccepted}},
		{"abandon", amqp.State{Code: amqp.CodeModified, MessageAnnotations: annotations}, amqp.State{Code: amqp.CodeModified}},
		{"abandon, counted", amqp.State{Code: amqp.CodeModified, DeliveryFailed: true}, amqp.State{Code: amqp.CodeModified, DeliveryFailed: true}},
		{
			"defer",
			amqp.State{Code: amqp.CodeModified, DeliveryFailed: true, UndeliverableHere: true},
			amqp.State{Code: amqp.CodeModified, DeliveryFailed: true, UndeliverableHere: true},
		},
		// With an error, the SDKs would treat the settlement as failed.
		{"dead-letter", amqp.State{Code: amqp.CodeRejected, Error: dead}, amqp.State{Code: amqp.CodeRejected}},
		{"release", amqp.State{Code: amqp.CodeReleased}, amqp.State{Code: amqp.CodeReleased}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := startT(t, queues("q"))
			check(t, srv.Send(t.Context(), "q", Message{ID: "1"}))
			p := newPeer(t, srv).open()
			p.attachReceiver(0, "q")
			p.expect(amqp.CodeAttach)
			p.send(0, &amqp.Flow{Handle: amqp.Some(uint32(0)), LinkCredit: amqp.Some(uint32(1)), IncomingWindow: 5000})
			id := p.expect(amqp.CodeTransfer).(*amqp.Transfer).DeliveryID.Value
			p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: c.say.Append(nil)})
			got := p.expect(amqp.CodeDisposition).(*amqp.Disposition)
			if !got.Settled || got.First != id || !bytes.Equal(got.State, c.want.Append(nil)) {
				t.Errorf("confirmed with %x, settled %v; want %x", got.State, got.Settled, c.want.Append(nil))
			}
		})
	}
}

// TestSettlementEchoesAreNotMixed: a frame that confirms several deliveries has the same
// outcome for all.
func TestSettlementEchoesAreNotMixed(t *testing.T) {
	t.Parallel()
	srv := startT(t, queues("q"))
	const n = 20
	for range n {
		check(t, srv.Send(t.Context(), "q", Message{}))
	}
	p := newPeer(t, srv).open()
	p.attachReceiver(0, "q")
	p.expect(amqp.CodeAttach)
	p.send(0, &amqp.Flow{Handle: amqp.Some(uint32(0)), LinkCredit: amqp.Some(uint32(n)), IncomingWindow: 5000})
	for range n {
		p.expect(amqp.CodeTransfer)
	}
	want := func(id uint32) []byte {
		if id%4 < 2 {
			return amqp.StateAccepted
		}
		return amqp.Rejected(nil)
	}
	var frames []byte
	for id := range uint32(n) {
		d := amqp.Disposition{Role: amqp.RoleReceiver, First: id, State: want(id)}
		frames = amqp.AppendFrame(frames, amqp.FrameAMQP, 0, &d)
	}
	p.write(frames)
	for confirmed := 0; confirmed < n; {
		d := p.expect(amqp.CodeDisposition).(*amqp.Disposition)
		for id := d.First; id <= d.Last.Or(d.First); id++ {
			if !bytes.Equal(d.State, want(id)) {
				t.Errorf("delivery %d confirmed with %x", id, d.State)
			}
			confirmed++
		}
	}
}

// TestLostSessionCannotBeUsed: a receiver whose session another one has accepted since neither
// renews its lock, nor reads or writes its state, nor sees the messages of other sessions.
func TestLostSessionCannotBeUsed(t *testing.T) {
	o := &Options{Topology: &Topology{Queues: []Queue{{Name: "q", RequiresSession: true}}}}
	bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "q", Message{ID: "1", Session: ptr("s")}, Message{ID: "2", Session: ptr("s")}, Message{ID: "3", Session: ptr("other")}))
		accept := func() *azservicebus.SessionReceiver { return must(client.AcceptSessionForQueue(ctx, "q", "s", nil))(t) }
		first := accept()
		deferred := must(first.ReceiveMessages(ctx, 1, nil))(t)
		check(t, first.DeferMessage(ctx, deferred[0], nil))
		check(t, first.Close(ctx))
		for what, use := range map[string]func(r *azservicebus.SessionReceiver) error{
			"renewed":         func(r *azservicebus.SessionReceiver) error { return r.RenewSessionLock(ctx, nil) },
			"wrote the state": func(r *azservicebus.SessionReceiver) error { return r.SetSessionState(ctx, []byte("lost"), nil) },
			"read the state": func(r *azservicebus.SessionReceiver) error {
				_, err := r.GetSessionState(ctx, nil)
				return err
			},
			"received deferred": func(r *azservicebus.SessionReceiver) error {
				_, err := r.ReceiveDeferredMessages(ctx, []int64{*deferred[0].SequenceNumber}, nil)
				return err
			},
			"peeked": func(r *azservicebus.SessionReceiver) error {
				_, err := r.PeekMessages(ctx, 10, nil)
				return err
			},
		} {
			lost := accept()
			check(t, srv.ExpireSession("q", "s"))
			holder := accept()
			check(t, holder.SetSessionState(ctx, []byte("holder"), nil))
			if err := use(lost); err == nil {
				t.Errorf("the receiver that lost the session %s", what)
			}
			if state := must(holder.GetSessionState(ctx, nil))(t); string(state) != "holder" {
				t.Errorf("the state is %q", state)
			}
			check(t, holder.RenewSessionLock(ctx, nil))
			if got := must(holder.PeekMessages(ctx, 10, nil))(t); len(got) != 2 {
				t.Errorf("the holder sees %d messages of its session, want 2", len(got))
			}
			check(t, lost.Close(ctx))
			check(t, holder.Close(ctx))
		}
	})
}
