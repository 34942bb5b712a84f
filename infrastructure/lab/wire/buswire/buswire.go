// Package buswire has one script for each wire behaviour of Service Bus that Feedbox relies on. They use
// azservicebus, on any endpoint.
package buswire

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/lab/wire"
)

// Target is a topic with duplicate detection and a subscription with sessions that dead-letters expired
// messages. Only the scripts may use them: another consumer would receive their messages.
type Target struct {
	Topic, Subscription string
	// Client is for all calls but refused sends, for which Once has its own connection and does not retry.
	Client, Once *azservicebus.Client
	Emulator     bool // ours
	// Patient allows a script to wait for the ten minutes after which the service detaches a link.
	Patient bool
}

// Open connects the clients. close must be called at the end.
func Open(connection, topic, subscription string) (w *Target, closeAll func(ctx context.Context) error, err error) {
	w = &Target{Topic: topic, Subscription: subscription}
	if w.Client, err = azservicebus.NewClientFromConnectionString(connection, nil); err != nil {
		return nil, nil, err
	}
	w.Once, err = azservicebus.NewClientFromConnectionString(connection, &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}})
	if err != nil {
		return nil, nil, err
	}
	return w, func(ctx context.Context) error { return errors.Join(w.Client.Close(ctx), w.Once.Close(ctx)) }, nil
}

// Script is one wire behaviour.
type Script struct {
	Name string // after servicebus/ in UNVERIFIED.md
	run  func(p *probe)
}

// scriptLimit bounds a script, besides the time in which one of them is idle.
const scriptLimit = 2 * time.Minute

// idle is longer than the ten minutes after which the service detaches a link. Our emulator does so only
// if an option says so.
func (w *Target) idle() time.Duration {
	if w.Emulator {
		return time.Second
	}
	return 10*time.Minute + 30*time.Second
}

// Play runs a script in its own sessions. It leaves no messages, except dead letters that it cannot
// distinguish from those of others.
func (w *Target) Play(ctx context.Context, s *Script) wire.Outcome {
	ctx, cancel := context.WithTimeout(ctx, scriptLimit+w.idle())
	defer cancel()
	return wire.Play("servicebus/"+s.Name, func(t *wire.Trial) {
		p := &probe{Trial: t, Target: w, ctx: ctx, session: "s-" + wire.RandomName()}
		p.sender = must(w.Client.NewSender(w.Topic, nil))(p)
		defer func() { p.check(p.sender.Close(ctx)) }()
		s.run(p)
	})
}

// probe is the context of a script.
type probe struct {
	*wire.Trial
	*Target
	ctx     context.Context //nolint:containedctx // of one script
	session string          // of this script only
	sender  *azservicebus.Sender
}

// check ends the script if err is not nil.
func (p *probe) check(err error) { p.Must("a call failed", err) }

func must[T any](v T, err error) func(p *probe) T {
	return func(p *probe) T {
		p.check(err)
		return v
	}
}

// message returns a message in the script's session.
func (p *probe) message(id string) *azservicebus.Message {
	unique := p.session + "/" + id
	return &azservicebus.Message{MessageID: &unique, SessionID: &p.session, Body: []byte(id)}
}

// send sends one batch.
func (p *probe) send(messages ...*azservicebus.Message) {
	batch := must(p.sender.NewMessageBatch(p.ctx, nil))(p)
	for _, m := range messages {
		p.check(batch.AddMessage(m, nil))
	}
	p.check(p.sender.SendMessageBatch(p.ctx, batch, nil))
}

func (p *probe) accept(session string) *azservicebus.SessionReceiver {
	return must(p.Client.AcceptSessionForSubscription(p.ctx, p.Topic, p.Subscription, session, nil))(p)
}

// take receives messages with these bodies in this order. It waits for all of them in one
// call, because between two calls the client releases arriving messages one by one, and the
// next call may start after such a message (azservicebus, receiver.go, newReleaserFunc).
func (p *probe) take(r *azservicebus.SessionReceiver, bodies ...string) []*azservicebus.ReceivedMessage {
	var got []*azservicebus.ReceivedMessage
	for len(got) < len(bodies) {
		some, err := r.ReceiveMessages(p.ctx, len(bodies)-len(got), &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Minute})
		p.check(err)
		got = append(got, some...)
	}
	for i, m := range got {
		if string(m.Body) != bodies[i] {
			p.Contradict("message %d is %q, want %q", i, m.Body, bodies[i])
			p.Stop()
		}
	}
	return got
}

func (p *probe) complete(r *azservicebus.SessionReceiver, messages ...*azservicebus.ReceivedMessage) {
	for _, m := range messages {
		p.check(r.CompleteMessage(p.ctx, m, nil))
	}
}

// empty checks that no more messages arrive for a while.
func (p *probe) empty(r *azservicebus.SessionReceiver) {
	if left := must(r.PeekMessages(p.ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: ptr(int64(0))}))(p); len(left) > 0 {
		p.Contradict("%d messages are left, the first is %q", len(left), left[0].Body)
	}
}

// isCode reports whether err is the SDK's error with that code.
func isCode(err error, code azservicebus.Code) bool {
	e, ok := errors.AsType[*azservicebus.Error](err)
	return ok && e.Code == code
}

func ptr[T any](v T) *T { return &v }
