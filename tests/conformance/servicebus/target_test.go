package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
)

// target is the endpoint under test: a topic with duplicate detection and one session
// subscription, which only the tests may use.
type target struct {
	client              *azservicebus.Client
	once                *azservicebus.Client // has its own connection and does not retry, for refused sends
	topic, subscription string
	ours                bool
}

// openTarget connects to the endpoint in the environment, or to a new emulator.
func openTarget(t *testing.T) *target {
	t.Helper()
	w := &target{
		topic:        cmp.Or(os.Getenv("FEEDBOX_TEST_SERVICEBUS_TOPIC"), "contacts"),
		subscription: cmp.Or(os.Getenv("FEEDBOX_TEST_SERVICEBUS_SUBSCRIPTION"), "contacts"),
	}
	connection := os.Getenv("FEEDBOX_TEST_SERVICEBUS_CONNECTION_STRING")
	if connection == "" {
		w.ours = true
		connection = busemu.StartT(t, &busemu.Options{Topology: &busemu.Topology{Topics: []busemu.Topic{{
			Name: w.topic, RequiresDuplicateDetection: true,
			Subscriptions: []busemu.Subscription{{
				Name:            w.subscription,
				RequiresSession: true, DeadLetteringOnExpiration: true,
			}},
		}}}}).ConnectionString()
	}
	w.client = connect(t, connection, nil)
	w.once = connect(t, connection, &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}})
	return w
}

func connect(t *testing.T, connection string, o *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(connection, o)
	if err != nil {
		t.Fatalf("FEEDBOX_TEST_SERVICEBUS_CONNECTION_STRING: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Logf("close the client: %v", err)
		}
	})
	return client
}

// probe is the context of a script.
type probe struct {
	*testing.T
	*target
	ctx     context.Context //nolint:containedctx // of one script
	session string          // of this script only
	sender  *azservicebus.Sender
}

// play runs one script.
func (w *target) play(t *testing.T, run func(p *probe)) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p := &probe{T: t, target: w, ctx: ctx, session: "s-" + random()}
	p.sender = must(w.client.NewSender(w.topic, nil))(p)
	defer func() { p.check(p.sender.Close(ctx)) }()
	run(p)
}

func (p *probe) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func must[T any](v T, err error) func(p *probe) T {
	return func(p *probe) T {
		p.Helper()
		p.check(err)
		return v
	}
}

func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// message returns a message in the script's session.
func (p *probe) message(id string) *azservicebus.Message {
	unique := p.session + "/" + id
	return &azservicebus.Message{MessageID: &unique, SessionID: &p.session, Body: []byte(id)}
}

// send sends one batch.
func (p *probe) send(messages ...*azservicebus.Message) {
	p.Helper()
	batch := must(p.sender.NewMessageBatch(p.ctx, nil))(p)
	for _, m := range messages {
		p.check(batch.AddMessage(m, nil))
	}
	p.check(p.sender.SendMessageBatch(p.ctx, batch, nil))
}

func (p *probe) accept(session string) *azservicebus.SessionReceiver {
	p.Helper()
	return must(p.client.AcceptSessionForSubscription(p.ctx, p.topic, p.subscription, session, nil))(p)
}

// take receives messages with these bodies in this order. It waits for all of them in one
// call, because between two calls the client releases arriving messages one by one, and the
// next call may start after such a message (azservicebus, receiver.go, newReleaserFunc).
func (p *probe) take(r *azservicebus.SessionReceiver, bodies ...string) []*azservicebus.ReceivedMessage {
	p.Helper()
	var got []*azservicebus.ReceivedMessage
	for len(got) < len(bodies) {
		some, err := r.ReceiveMessages(p.ctx, len(bodies)-len(got), &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Minute})
		p.check(err)
		got = append(got, some...)
	}
	for i, m := range got {
		if string(m.Body) != bodies[i] {
			p.Fatalf("message %d is %q, want %q", i, m.Body, bodies[i])
		}
	}
	return got
}

func (p *probe) complete(r *azservicebus.SessionReceiver, messages ...*azservicebus.ReceivedMessage) {
	p.Helper()
	for _, m := range messages {
		p.check(r.CompleteMessage(p.ctx, m, nil))
	}
}

// empty checks that no more messages arrive for a while.
func (p *probe) empty(r *azservicebus.SessionReceiver) {
	p.Helper()
	if left := must(r.PeekMessages(p.ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: ptr(int64(0))}))(p); len(left) > 0 {
		p.Errorf("%d messages are left, the first is %q", len(left), left[0].Body)
	}
}

// isCode reports whether err is the SDK's error with that code.
func isCode(err error, code azservicebus.Code) bool {
	e, ok := errors.AsType[*azservicebus.Error](err)
	return ok && e.Code == code
}

func ptr[T any](v T) *T { return &v }
