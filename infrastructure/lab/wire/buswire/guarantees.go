package buswire

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/lab/wire"
)

// More scripts: behaviour that the relay and its consumers depend on when the
// broker refuses, is full, or dead-letters (UNVERIFIED.md, S3 to S11 and R4).

// batchRefusedWhole sends a batch with one message that cannot be accepted.
func batchRefusedWhole(p *probe) {
	bad := p.message("bad")
	bad.PartitionKey = ptr("another than the session")
	p.refused(p.message("1"), bad, p.message("2"))
	p.send(p.message("1"), p.message("2")) // a message that was stored before would be dropped here, or arrive too early or twice
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, "1", "2")...)
	p.empty(r)
}

// refused sends a batch that the broker must refuse. A missing answer does not count.
func (p *probe) refused(messages ...*azservicebus.Message) {
	sender := must(p.Once.NewSender(p.Topic, nil))(p)
	defer func() { _ = sender.Close(p.ctx) }() // the refusal may have closed it
	batch := must(sender.NewMessageBatch(p.ctx, nil))(p)
	for _, m := range messages {
		p.check(batch.AddMessage(m, nil))
	}
	if err := sender.SendMessageBatch(p.ctx, batch, nil); err == nil || p.ctx.Err() != nil {
		p.Contradict("a batch with what cannot be accepted: %v", err)
	}
}

// batchFull fills a batch up to the limit of the link. All messages are accepted in order.
func batchFull(p *probe) {
	batch := must(p.sender.NewMessageBatch(p.ctx, nil))(p)
	var want []string
	for {
		m := p.message(fmt.Sprint(len(want)))
		m.Body = append(m.Body, strings.Repeat(".", 20<<10)...)
		err := batch.AddMessage(m, nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break
		}
		p.check(err)
		want = append(want, string(m.Body))
	}
	if len(want) < 8 {
		p.Contradict("%d messages of 20 KB fill a batch of %d bytes", len(want), batch.NumBytes())
	}
	p.check(p.sender.SendMessageBatch(p.ctx, batch, nil))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, want...)...)
	p.empty(r)
}

// batchesInOrder sends batches, each after the answer to the previous one.
func batchesInOrder(p *probe) {
	const batches, each = 10, 20
	var want []string
	for range batches {
		var messages []*azservicebus.Message
		for range each {
			id := fmt.Sprintf("%03d", len(want))
			want = append(want, id)
			messages = append(messages, p.message(id))
		}
		p.send(messages...)
	}
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, want...)...)
	p.empty(r)
}

// partitionKeyDiffers: a message is refused if its partition key differs from its session
// id. The script round-trip sends one with equal values.
func partitionKeyDiffers(p *probe) {
	m := p.message("1")
	m.PartitionKey = ptr("another than the session")
	p.refused(m)
}

// idLimits: ids of 128 characters are accepted, longer ones refused.
func idLimits(p *probe) {
	pad := func(s string, n int) string { return s + strings.Repeat("x", n-len(s)) }
	longest := pad(p.session, 128)
	p.check(p.sender.SendMessage(p.ctx, &azservicebus.Message{MessageID: &longest, SessionID: &longest, PartitionKey: &longest, Body: []byte("1")}, nil))
	r := p.accept(longest)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "1")
	if got[0].MessageID != longest || *got[0].SessionID != longest {
		p.Contradict("ids came back as %q and %q", got[0].MessageID, *got[0].SessionID)
	}
	p.complete(r, got...)
	p.refused(&azservicebus.Message{MessageID: ptr(pad(p.session, 129)), SessionID: &p.session})
	p.refused(&azservicebus.Message{SessionID: ptr(pad(p.session, 129))})
}

// entityNotFound sends to a topic that does not exist. With a key of one topic only, the
// service may answer that the key has no right instead.
func entityNotFound(p *probe) {
	s := must(p.Client.NewSender(p.Topic+"-"+wire.RandomName(), nil))(p)
	defer func() { p.check(s.Close(p.ctx)) }()
	err := s.SendMessage(p.ctx, p.message("1"), nil)
	switch {
	case isCode(err, azservicebus.CodeNotFound):
	case isCode(err, azservicebus.CodeUnauthorizedAccess) && !p.Emulator: // the key is not the namespace's
	default:
		p.Contradict("a topic that is not there: %v", err)
	}
}

// deliveriesExhausted abandons a message until it is dead-lettered. Then the next message of
// the session is delivered.
func deliveriesExhausted(p *probe) {
	const most = 100 // the subscription's maximum must be lower
	p.send(p.message("bad"), p.message("good"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	for n := 0; ; n++ {
		got := must(r.ReceiveMessages(p.ctx, 1, nil))(p)
		if string(got[0].Body) == "good" {
			p.complete(r, got...)
			break
		}
		if n == most {
			p.Contradict("a message that was abandoned %d times comes again", n)
			p.Stop()
		}
		p.check(r.AbandonMessage(p.ctx, got[0], nil))
	}
	p.empty(r)
	if m := p.deadLetters("bad"); m.DeadLetterReason == nil || *m.DeadLetterReason != "MaxDeliveryCountExceeded" {
		p.Contradict("reason %v", m.DeadLetterReason)
	}
}

// messageWithoutSession: the subscription dead-letters such a message instead of dropping it.
func messageWithoutSession(p *probe) {
	m := p.message("stray")
	m.SessionID = nil
	p.check(p.sender.SendMessage(p.ctx, m, nil))
	p.deadLetters("stray")
}

// linkIdle sends on a link that the service has detached. The client opens a new one.
func linkIdle(p *probe) {
	if !p.Emulator && !p.Patient {
		p.Must("wait until the service detaches a link", errors.New("this takes ten minutes, and the run is shorter"))
	}
	p.send(p.message("1"))
	p.Pause(p.ctx, p.idle())
	began := time.Now()
	p.send(p.message("2"))
	if took := time.Since(began); took > 10*time.Second {
		p.Contradict("a message after an idle time of %v took %v", p.idle(), took)
	}
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, "1", "2")...)
}
