package buswire

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Scripts has all scripts in the order in which they run. The first one needs all sessions to be empty.
var Scripts = []Script{
	{"accept-next-timeout", acceptNextTimesOut},
	{"session-order", sessionOrder},
	{"batch-of-many-sessions", batchOfManySessions},
	{"duplicate-dropped", duplicateDropped},
	{"duplicate-in-batch", duplicateInBatch},
	{"session-locked", sessionLocked},
	{"close-releases", closeReleases},
	{"abandon-keeps-order", abandonKeepsOrder},
	{"dead-letter", deadLetter},
	{"session-state", sessionState},
	{"round-trip", roundTrip},
	{"large-message", largeMessage},
	{"too-large", tooLarge},
	{"schedule-and-cancel", scheduleAndCancel},
	{"defer", deferred},
	{"lock-renewal", lockRenewal},
	{"peek-in-session", peekInSession},
	{"expired-message", expiredMessage},
	{"batch-refused-whole", batchRefusedWhole},
	{"batch-full", batchFull},
	{"batches-in-order", batchesInOrder},
	{"partition-key-differs", partitionKeyDiffers},
	{"id-limits", idLimits},
	{"entity-not-found", entityNotFound},
	{"deliveries-exhausted", deliveriesExhausted},
	{"message-without-session", messageWithoutSession},
	{"link-idle", linkIdle}, // the last one, because it takes ten minutes
}

func acceptNextTimesOut(p *probe) {
	short, cancel := context.WithTimeout(p.ctx, 3*time.Second)
	defer cancel()
	_, err := p.Client.AcceptNextSessionForSubscription(short, p.Topic, p.Subscription, nil)
	if !isCode(err, azservicebus.CodeTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		p.Contradict("accepting a session when there is none: %v (is the subscription idle and empty?)", err)
	}
}

func sessionOrder(p *probe) {
	p.send(p.message("1"), p.message("2"))
	p.send(p.message("3"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "1", "2", "3")
	for i, m := range got {
		if i > 0 && *m.SequenceNumber <= *got[i-1].SequenceNumber || *m.SessionID != p.session || m.DeliveryCount != 1 {
			p.Contradict("message %d: sequence number %d, session %s, delivery count %d", i, *m.SequenceNumber, *m.SessionID, m.DeliveryCount)
		}
	}
	p.complete(r, got...)
	p.empty(r)
}

func batchOfManySessions(p *probe) {
	var batch []*azservicebus.Message
	for _, id := range []string{"a1", "b1", "a2", "b2"} {
		m := p.message(id)
		m.SessionID = ptr(p.session + id[:1])
		batch = append(batch, m)
	}
	p.send(batch...)
	for _, s := range []string{"b", "a"} {
		r := p.accept(p.session + s)
		p.complete(r, p.take(r, s+"1", s+"2")...)
		p.empty(r)
		p.check(r.Close(p.ctx))
	}
}

func duplicateDropped(p *probe) {
	p.send(p.message("1"))
	p.send(p.message("1"), p.message("2")) // accepted like any other
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, "1", "2")...)
	p.send(p.message("1"), p.message("3")) // the duplicate history is kept after completion
	p.complete(r, p.take(r, "3")...)
	p.empty(r)
}

func duplicateInBatch(p *probe) {
	p.send(p.message("1"), p.message("1"), p.message("2"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, "1", "2")...)
	p.empty(r)
}

func sessionLocked(p *probe) {
	r := p.accept(p.session)
	if again, err := p.Client.AcceptSessionForSubscription(p.ctx, p.Topic, p.Subscription, p.session, nil); err == nil {
		p.Contradict("a session was accepted twice")
		p.check(again.Close(p.ctx))
	}
	p.check(r.Close(p.ctx))
	p.check(p.accept(p.session).Close(p.ctx))
}

func closeReleases(p *probe) {
	p.send(p.message("1"), p.message("2"), p.message("3"))
	r := p.accept(p.session)
	p.complete(r, p.take(r, "1", "2")[0])
	p.check(r.Close(p.ctx))
	r = p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "2", "3")
	if got[0].DeliveryCount != 1 {
		p.Contradict("giving a session back counted as a delivery: %d", got[0].DeliveryCount)
	}
	p.complete(r, got...)
}

func abandonKeepsOrder(p *probe) {
	p.send(p.message("1"), p.message("2"), p.message("3"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.check(r.AbandonMessage(p.ctx, p.take(r, "1")[0], nil))
	got := p.take(r, "1", "2", "3")
	if got[0].DeliveryCount != 2 || got[1].DeliveryCount != 1 {
		p.Contradict("delivery counts %d and %d", got[0].DeliveryCount, got[1].DeliveryCount)
	}
	p.complete(r, got...)
}

func deadLetter(p *probe) {
	p.send(p.message("bad"), p.message("good"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "bad", "good")
	p.check(r.DeadLetterMessage(p.ctx, got[0], &azservicebus.DeadLetterOptions{Reason: ptr("reason"), ErrorDescription: ptr("description")}))
	p.complete(r, got[1])
	p.empty(r)
	m := p.deadLetters("bad")
	if m.DeadLetterReason == nil || *m.DeadLetterReason != "reason" || m.DeadLetterErrorDescription == nil || *m.DeadLetterErrorDescription != "description" {
		p.Contradict("reason %v, description %v", m.DeadLetterReason, m.DeadLetterErrorDescription)
	}
}

// deadLetters waits for one message of the script in the dead-letter queue and completes
// it. It abandons messages of others.
func (p *probe) deadLetters(id string) *azservicebus.ReceivedMessage {
	r := must(p.Client.NewReceiverForSubscription(p.Topic, p.Subscription, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}))(p)
	defer func() { p.check(r.Close(p.ctx)) }()
	for {
		for _, m := range must(r.ReceiveMessages(p.ctx, 10, nil))(p) {
			if m.MessageID == p.session+"/"+id {
				p.check(r.CompleteMessage(p.ctx, m, nil))
				return m
			}
		}
	}
}

func sessionState(p *probe) {
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	for _, state := range [][]byte{nil, []byte("half way"), nil} {
		p.check(r.SetSessionState(p.ctx, state, nil))
		if got := must(r.GetSessionState(p.ctx, nil))(p); !bytes.Equal(got, state) {
			p.Contradict("state %q, want %q", got, state)
		}
	}
}

func roundTrip(p *probe) {
	m := p.message("all")
	m.Subject, m.ContentType, m.CorrelationID, m.To, m.ReplyTo = ptr("Created"), ptr("application/json"), ptr("c"), ptr("t"), ptr("r")
	m.ApplicationProperties = map[string]any{"text": "é", "n": int64(1) << 40, "yes": true, "half": 0.5}
	m.PartitionKey = &p.session
	p.send(m)
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "all")[0]
	if got.MessageID != *m.MessageID || *got.Subject != "Created" || *got.ContentType != "application/json" || *got.CorrelationID != "c" ||
		*got.To != "t" || *got.ReplyTo != "r" || *got.PartitionKey != p.session || got.EnqueuedTime == nil || !maps.Equal(got.ApplicationProperties, m.ApplicationProperties) {
		p.Contradict("came back as %+v", got)
	}
	p.complete(r, got)
}

func largeMessage(p *probe) {
	m := p.message("large")
	m.Body = bytes.Repeat([]byte("feedbox "), 200<<10/8) // several frames
	p.send(m)
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	p.complete(r, p.take(r, string(m.Body))...)
}

func tooLarge(p *probe) {
	m := p.message("too large")
	m.Body = make([]byte, 2<<20) // larger than a batch of any tier
	batch := must(p.sender.NewMessageBatch(p.ctx, nil))(p)
	if err := batch.AddMessage(m, nil); !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		p.Contradict("a message of 2 MB fits into a batch: %v", err)
	}
}

func scheduleAndCancel(p *probe) {
	at := time.Now().Add(2 * time.Second)
	numbers := must(p.sender.ScheduleMessages(p.ctx, []*azservicebus.Message{p.message("kept"), p.message("cancelled")}, at, nil))(p)
	p.check(p.sender.CancelScheduledMessages(p.ctx, numbers[1:], nil))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "kept")
	if early := time.Until(at); early > 500*time.Millisecond {
		p.Contradict("it came %v too early", early)
	}
	p.complete(r, got...)
	p.empty(r)
}

func deferred(p *probe) {
	p.send(p.message("1"), p.message("2"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	got := p.take(r, "1", "2")
	p.check(r.DeferMessage(p.ctx, got[0], nil))
	p.complete(r, got[1])
	back := must(r.ReceiveDeferredMessages(p.ctx, []int64{*got[0].SequenceNumber}, nil))(p)
	if len(back) != 1 || string(back[0].Body) != "1" {
		p.Contradict("%d deferred messages came back", len(back))
		p.Stop()
	}
	p.complete(r, back...)
	p.empty(r)
}

func lockRenewal(p *probe) {
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	before := r.LockedUntil()
	select {
	case <-time.After(100 * time.Millisecond):
	case <-p.ctx.Done():
	}
	p.check(r.RenewSessionLock(p.ctx, nil))
	if !r.LockedUntil().After(before) {
		p.Contradict("locked until %v before, %v after the renewal", before, r.LockedUntil())
	}
}

func peekInSession(p *probe) {
	p.send(p.message("1"), p.message("2"))
	r := p.accept(p.session)
	defer func() { p.check(r.Close(p.ctx)) }()
	var bodies []string
	for _, m := range must(r.PeekMessages(p.ctx, 10, nil))(p) {
		bodies = append(bodies, string(m.Body))
	}
	if strings.Join(bodies, " ") != "1 2" {
		p.Contradict("peeked %q", bodies)
	}
	p.complete(r, p.take(r, "1", "2")...)
}

func expiredMessage(p *probe) {
	m := p.message("brief")
	m.TimeToLive = ptr(time.Second)
	p.send(m)
	if m := p.deadLetters("brief"); m.DeadLetterReason == nil || *m.DeadLetterReason != "TTLExpiredException" {
		p.Contradict("reason %v", m.DeadLetterReason)
	}
}
