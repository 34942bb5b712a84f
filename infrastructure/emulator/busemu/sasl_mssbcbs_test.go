package busemu

import (
	"bufio"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// TestSASLMSSBCBS: the .NET client's mechanism is offered and grants nothing. A token put on
// the connection then grants rights (Azure.Messaging.ServiceBus, AmqpConnectionScope.cs). The
// test speaks the protocol itself, because go-amqp does not support the mechanism.
func TestSASLMSSBCBS(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		nc := must(srv.Dial(ctx))(t)
		p := &peer{t, nc, bufio.NewReader(nc)}
		p.write(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL))
		offer, ok := p.expect(amqp.CodeSASLMechanisms).(*amqp.SASLMechanisms)
		if !ok || !slices.Contains(offer.Mechanisms, "MSSBCBS") {
			t.Fatalf("offered: %+v", offer)
		}
		p.write(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: "MSSBCBS"}))
		outcome, ok := p.expect(amqp.CodeSASLOutcome).(*amqp.SASLOutcome)
		if !ok || outcome.Code != amqp.SASLOK || p.r.Buffered() > 0 {
			t.Fatalf("outcome %+v, %d bytes after it", outcome, p.r.Buffered())
		}

		conn := must(goamqp.NewConn(ctx, nc, nil))(t)
		defer func() { _ = conn.Close() }()
		session := must(conn.NewSession(ctx, nil))(t)
		_, err := session.NewSender(ctx, "q", nil)
		if c := condition(t, err); c != goamqp.ErrCondUnauthorizedAccess {
			t.Errorf("condition %s before the token", c)
		}
		putToken(ctx, t, session, "sb://host/q", sign(t, "sb://host/q", time.Now().Add(time.Minute)))
		sender := must(session.NewSender(ctx, "q", nil))(t)
		check(t, sender.Send(ctx, goamqp.NewMessage([]byte("x")), nil))
	})
}
