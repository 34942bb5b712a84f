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

func TestCreditsAreNotNegative(t *testing.T) {
	if _, err := Start(&Options{CreditsPerSecond: -1}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("started: %v", err)
	}
}
