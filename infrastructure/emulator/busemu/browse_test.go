package busemu

import (
	"testing"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

func (p *peer) attachBrowser(handle uint32, address string, mode amqp.Symbol) {
	p.send(0, &amqp.Attach{
		Name: "b-" + address, Handle: handle, Role: amqp.RoleReceiver,
		Source: &amqp.Source{Address: amqp.Some(address), DistributionMode: mode}, Target: &amqp.Target{},
	})
}

// TestBrowser: a source with distribution-mode copy returns messages and removes none,
// whatever outcome the peer sends.
func TestBrowser(t *testing.T) {
	t.Parallel()
	srv := startT(t, queues("q"))
	for _, id := range []string{"1", "2"} {
		check(t, srv.Send(t.Context(), "q", Message{ID: id}))
	}
	p := newPeer(t, srv).open()
	p.attachBrowser(0, "q", "copy")
	if a := p.expect(amqp.CodeAttach).(*amqp.Attach); a.Source == nil || a.Source.DistributionMode != "copy" {
		t.Errorf("attached with %+v", a.Source)
	}
	p.send(0, &amqp.Flow{Handle: amqp.Some(uint32(0)), LinkCredit: amqp.Some(uint32(10)), IncomingWindow: 5000, Drain: true})
	tags := make(map[string]bool)
	for range 2 {
		d := p.expect(amqp.CodeTransfer).(*amqp.Transfer)
		tags[string(d.DeliveryTag)] = true
		p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: d.DeliveryID.Value, State: amqp.StateAccepted})
	}
	if len(tags) != 2 {
		t.Error("two deliveries have the same tag")
	}
	for drained := false; !drained; {
		drained = p.expect(amqp.CodeFlow).(*amqp.Flow).DeliveryCount.Value == 10
	}
	if d := p.expect(amqp.CodeDisposition).(*amqp.Disposition); !d.Settled {
		t.Error("not confirmed")
	}
	left := must(srv.Peek("q", 10))(t)
	if c := must(srv.Counters("q"))(t); len(left) != 2 || c.Delivered != 0 {
		t.Errorf("after browsing %d messages are left: %+v", len(left), c)
	}
}

// TestUnknownDistributionMode: an unknown mode is refused, because moving messages by mistake
// would lose them.
func TestUnknownDistributionMode(t *testing.T) {
	t.Parallel()
	p := newPeer(t, startT(t, queues("q"))).open()
	p.attachBrowser(0, "q", "fan")
	if d := p.expect(amqp.CodeDetach).(*amqp.Detach); d.Error == nil || d.Error.Condition != condNotImplemented {
		t.Errorf("detached with %+v", d.Error)
	}
}
