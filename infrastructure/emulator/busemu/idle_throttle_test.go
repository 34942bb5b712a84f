package busemu

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// attaches counts the links that clients attach to entities.
func attaches(srv *Server) func() int {
	calls := make(chan struct{}, 1000)
	srv.Control(OpAttach, func(*Call) *Fault {
		calls <- struct{}{}
		return nil
	})
	return func() int { return len(calls) }
}

// TestIdleLinksEnd: a link is detached after ten minutes without a message, not before, and
// the SDK makes a new one.
func TestIdleLinksEnd(t *testing.T) {
	for _, ends := range []bool{true, false} {
		o := queues("q")
		o.EndIdle = ends
		bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
			attached := attaches(srv)
			sender := must(client.NewSender("q", nil))(t)
			for i := range 3 { // not idle: a message each nine minutes
				check(t, sender.SendMessage(ctx, body(strconv.Itoa(i)), nil))
				time.Sleep(9 * time.Minute)
			}
			if n := attached(); n != 1 {
				t.Errorf("%d links were attached for a sender in use", n)
			}
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			check(t, sender.SendMessage(ctx, body("x"), nil))
			if n := attached(); n != 1 && !ends || n != 2 && ends {
				t.Errorf("with EndIdle=%t, %d links were attached", ends, n)
			}
		})
	}
}

// TestIdleConnectionsEnd: a connection has five minutes without a link.
func TestIdleConnectionsEnd(t *testing.T) {
	o := queues("q")
	o.EndIdle = true
	bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		sender := must(client.NewSender("q", nil))(t)
		check(t, sender.SendMessage(ctx, body("a"), nil))
		check(t, sender.Close(ctx))
		time.Sleep(4 * time.Minute)
		if n := srv.Connections(); n != 1 {
			t.Errorf("%d connections after four minutes", n)
		}
		time.Sleep(3 * time.Minute)
		if n := srv.Connections(); n != 0 {
			t.Errorf("%d connections after seven minutes", n)
		}
		check(t, must(client.NewSender("q", nil))(t).SendMessage(ctx, body("b"), nil))
	})
}

// TestThrottledNamespace: operations beyond a second's credits are refused with server-busy,
// which the SDK retries; deliveries wait for the next second.
func TestThrottledNamespace(t *testing.T) {
	o := queues("q")
	o.CreditsPerSecond = 10
	bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		impatient := must(azservicebus.NewClientFromConnectionString(srv.ConnectionString(), &azservicebus.ClientOptions{
			NewWebSocketConn: srv.ClientOptions().NewWebSocketConn, RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
		}))(t)
		sender := must(impatient.NewSender("q", nil))(t)
		for i := range 10 {
			check(t, sender.SendMessage(ctx, body(strconv.Itoa(i)), nil))
		}
		err := sender.SendMessage(ctx, body("too many"), nil)
		if err == nil {
			t.Error("the eleventh message was taken")
		} else if c := condition(t, err); string(c) != string(ServerBusy) {
			t.Errorf("the eleventh message: %v", err)
		}
		check(t, impatient.Close(ctx))
		client := clientT(t, srv)
		began := time.Now()
		sender = must(client.NewSender("q", nil))(t)
		for i := range 15 {
			check(t, sender.SendMessage(ctx, body("r"+strconv.Itoa(i)), nil))
		}
		if d := time.Since(began); d < 2*time.Second {
			t.Errorf("15 messages were sent in %v", d)
		}
		time.Sleep(time.Second)
		began = time.Now()
		receiver := must(client.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}))(t)
		for got := 0; got < 25; {
			messages, err := receiver.ReceiveMessages(ctx, 25-got, nil)
			check(t, err)
			got += len(messages)
		}
		if d := time.Since(began); d < 2*time.Second {
			t.Errorf("25 messages were received in %v", d)
		}
		check(t, client.Close(ctx))
	})
}

// TestMessagingUnitsLimitBytesEachWay: sends beyond a second's bytes are refused with server-busy,
// which the SDK retries; deliveries wait.
func TestMessagingUnitsLimitBytesEachWay(t *testing.T) {
	o := queues("q")
	o.Premium, o.MessagingUnits = true, 1
	bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		impatient := must(azservicebus.NewClientFromConnectionString(srv.ConnectionString(), &azservicebus.ClientOptions{
			NewWebSocketConn: srv.ClientOptions().NewWebSocketConn, RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
		}))(t)
		large := &azservicebus.Message{Body: make([]byte, 500_000)}
		sender := must(impatient.NewSender("q", nil))(t)
		for range 8 {
			check(t, sender.SendMessage(ctx, large, nil))
		}
		if err := sender.SendMessage(ctx, large, nil); err == nil || string(condition(t, err)) != string(ServerBusy) {
			t.Errorf("more than 4 MB in a second: %v", err)
		}
		check(t, impatient.Close(ctx))
		began := time.Now()
		sender = must(client.NewSender("q", nil))(t)
		for range 24 { // 12 MB
			check(t, sender.SendMessage(ctx, large, nil))
		}
		if d := time.Since(began); d < 2*time.Second {
			t.Errorf("12 MB were sent in %v", d)
		}
		began = time.Now()
		receiver := must(client.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}))(t)
		for got := 0; got < 32; { // 16 MB
			messages, err := receiver.ReceiveMessages(ctx, 32-got, nil)
			check(t, err)
			got += len(messages)
		}
		if d := time.Since(began); d < 3*time.Second || d > 6*time.Second {
			t.Errorf("16 MB were received in %v", d)
		}
	})
}

// A batch may cost more than the credits of a second. The seconds after it pay for it, also without traffic.
func TestDebtIsPaidWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := credits{limit: 10}
		c.take(95)
		time.Sleep(8 * time.Second)
		if _, ok := c.take(1); ok {
			t.Error("after eight seconds a batch of nine and a half is paid for")
		}
		time.Sleep(2 * time.Second)
		if _, ok := c.take(1); !ok {
			t.Error("after ten seconds the batch is not paid for")
		}
	})
}

func TestCreditsAreNotNegative(t *testing.T) {
	for _, o := range []Options{{CreditsPerSecond: -1}, {Premium: true, MessagingUnits: -1}, {MessagingUnits: 1}, {Premium: true, MessagingUnits: 1, CreditsPerSecond: 1}} {
		if srv, err := Start(&o); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("started: %v", err)
			_ = srv.Close()
		}
	}
}
