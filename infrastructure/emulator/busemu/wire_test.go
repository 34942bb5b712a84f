package busemu

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
)

// dial connects go-amqp with all rights.
func dial(ctx context.Context, t *testing.T, srv *Server, o *goamqp.ConnOptions) (*goamqp.Conn, *goamqp.Session) {
	t.Helper()
	if o == nil {
		o = &goamqp.ConnOptions{}
	}
	o.SASLType = goamqp.SASLTypePlain(DefaultKeyName, DefaultKey)
	nc := checkConn(t, must(srv.Dial(ctx))(t))
	conn := must(goamqp.NewConn(ctx, nc, o))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, must(conn.NewSession(ctx, nil))(t)
}

// TestMultiFrameTransfers: messages larger than either side's frames arrive whole.
func TestMultiFrameTransfers(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		conn, session := dial(ctx, t, srv, &goamqp.ConnOptions{MaxFrameSize: 513})
		sender := must(session.NewSender(ctx, "q", nil))(t)
		receiver := must(session.NewReceiver(ctx, "q", &goamqp.ReceiverOptions{SettlementMode: goamqp.ReceiverSettleModeSecond.Ptr()}))(t)
		for _, size := range []int{0, 1, 400, 513, 5000, 200_000} {
			want := bytes.Repeat([]byte{byte(size)}, size)
			check(t, sender.Send(ctx, goamqp.NewMessage(want), nil))
			m := must(receiver.Receive(ctx, nil))(t)
			if !bytes.Equal(m.GetData(), want) {
				t.Errorf("%d bytes arrived as %d", size, len(m.GetData()))
			}
			check(t, receiver.AcceptMessage(ctx, m))
		}
		_ = conn.Close()
	})
}

// TestDrain: all available messages arrive, then the credit is gone.
func TestDrain(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		const n = 700 // more than a link takes from its entity at a time
		for i := range n {
			check(t, srv.Send(ctx, "q", Message{ID: fmt.Sprint(i)}))
		}
		conn, session := dial(ctx, t, srv, nil)
		receiver := must(session.NewReceiver(ctx, "q", &goamqp.ReceiverOptions{Credit: -1, SettlementMode: goamqp.ReceiverSettleModeSecond.Ptr()}))(t)
		for range 2 { // the second round finds an empty queue
			check(t, receiver.IssueCredit(1000))
			synctest.Wait()
			check(t, receiver.DrainCredit(ctx, nil))
		}
		got := 0
		for m := receiver.Prefetched(); m != nil; m = receiver.Prefetched() {
			got++
		}
		if got != n {
			t.Errorf("%d of %d messages came", got, n)
		}
		// Without credit nothing arrives; with new credit it does.
		check(t, srv.Send(ctx, "q", Message{ID: "late"}))
		synctest.Wait()
		if m := receiver.Prefetched(); m != nil {
			t.Error("a message came without credit")
		}
		check(t, receiver.IssueCredit(1))
		if m := must(receiver.Receive(ctx, nil))(t); m.Properties.MessageID != "late" {
			t.Errorf("received %v", m.Properties.MessageID)
		}
		_ = conn.Close()
	})
}

// TestCreditIsRespected: the broker never sends more messages than the credit allows.
func TestCreditIsRespected(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		for i := range 20 {
			check(t, srv.Send(ctx, "q", Message{ID: fmt.Sprint(i)}))
		}
		conn, session := dial(ctx, t, srv, nil)
		receiver := must(session.NewReceiver(ctx, "q", &goamqp.ReceiverOptions{Credit: -1}))(t)
		total := 0
		for _, credit := range []int{1, 0, 3, 5, 100} {
			if credit > 0 {
				check(t, receiver.IssueCredit(uint32(credit)))
			}
			synctest.Wait()
			got := 0
			for m := receiver.Prefetched(); m != nil; m = receiver.Prefetched() {
				if want := fmt.Sprint(total + got); m.Properties.MessageID != want {
					t.Errorf("received %v, want %s", m.Properties.MessageID, want)
				}
				got++
			}
			if want := min(credit, 20-total); got != want {
				t.Errorf("credit %d brought %d messages, want %d", credit, got, want)
			}
			total += got
		}
		_ = conn.Close()
	})
}

// TestSessionWindows: a sender and a receiver of more frames than a session window do not
// stall.
func TestSessionWindows(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		conn, session := dial(ctx, t, srv, nil)
		const n = 12_000
		sender := must(session.NewSender(ctx, "q", &goamqp.SenderOptions{SettlementMode: goamqp.SenderSettleModeSettled.Ptr()}))(t)
		for range n {
			check(t, sender.Send(ctx, goamqp.NewMessage([]byte("x")), nil))
		}
		receiver := must(session.NewReceiver(ctx, "q", &goamqp.ReceiverOptions{Credit: 500, RequestedSenderSettleMode: goamqp.SenderSettleModeSettled.Ptr()}))(t)
		for i := range n {
			if _, err := receiver.Receive(ctx, nil); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		_ = conn.Close()
	})
}

// TestIdleConnection: an idle connection is kept alive by empty frames in both
// directions, for hours.
func TestIdleConnection(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		sender := must(client.NewSender("q", nil))(t)
		check(t, sender.SendMessage(ctx, body("a"), nil))
		time.Sleep(40 * time.Minute) // in the bubble: the SDK renews its tokens meanwhile
		if n := srv.Connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
		check(t, sender.SendMessage(ctx, body("b"), nil))
		if n := srv.Connections(); n != 1 {
			t.Errorf("%d connections: the SDK had to connect again", n)
		}
	})
}

// TestSilentPeer: a peer that is silent beyond its idle timeout is disconnected.
func TestSilentPeer(t *testing.T) {
	bubble(t, nil, func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		nc := must(srv.Dial(ctx))(t)
		go func() { // reads, and never writes again
			_, _ = nc.Write(opening())
		}()
		buf := make([]byte, 4096)
		start := time.Now()
		for {
			if _, err := nc.Read(buf); err != nil {
				break
			}
		}
		if d := time.Since(start); d < idleTimeout || d > 4*idleTimeout {
			t.Errorf("cut off after %v", d)
		}
		check(t, nc.Close())
	})
}

// TestSASLExternal: every offered mechanism that grants nothing can connect, and has no claim.
func TestSASLExternal(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		nc := must(srv.Dial(ctx))(t)
		conn := must(goamqp.NewConn(ctx, nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypeExternal("")}))(t)
		session := must(conn.NewSession(ctx, nil))(t)
		_, err := session.NewSender(ctx, "q", nil)
		if c := condition(t, err); c != goamqp.ErrCondUnauthorizedAccess {
			t.Errorf("condition %s", c)
		}
		_ = conn.Close()

		nc = must(srv.Dial(ctx))(t)
		if _, err := goamqp.NewConn(ctx, nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(DefaultKeyName, "wrong")}); err == nil {
			t.Error("connected with a wrong key")
		}
	})
}

// TestManyReceiversWaitForSessions: 200 callers wait for the next session. When 200 sessions
// get a message, each goes to one of them.
func TestManyReceiversWaitForSessions(t *testing.T) {
	bubble(t, &Options{Topology: outboxTopology()}, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		const n = 200
		got := make(chan string, n)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				r, err := client.AcceptNextSessionForSubscription(ctx, "contacts", "all", nil)
				if err != nil {
					t.Error(err)
					return
				}
				m, err := r.ReceiveMessages(ctx, 1, nil)
				if err != nil || len(m) != 1 || *m[0].SessionID != r.SessionID() {
					t.Errorf("session %s: %v, %v", r.SessionID(), m, err)
					return
				}
				if err := r.CompleteMessage(ctx, m[0], nil); err != nil {
					t.Error(err)
				}
				got <- r.SessionID()
				if err := r.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second) // in the bubble: all are waiting
		for i := range n {
			session := fmt.Sprintf("s%03d", i)
			check(t, srv.Send(ctx, "contacts", Message{ID: session, Session: &session}))
		}
		wg.Wait()
		close(got)
		seen := map[string]bool{}
		for id := range got {
			seen[id] = true
		}
		if len(seen) != n {
			t.Errorf("%d sessions were accepted, want %d", len(seen), n)
		}
	})
}

// TestCancelledAcceptLocksNothing: a caller that gave up holds no session.
func TestCancelledAcceptLocksNothing(t *testing.T) {
	bubble(t, &Options{Topology: outboxTopology()}, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		for range 5 {
			short, cancel := context.WithTimeout(ctx, time.Second)
			if _, err := client.AcceptNextSessionForSubscription(short, "contacts", "all", nil); err == nil {
				t.Fatal("accepted a session that does not exist")
			}
			cancel()
		}
		check(t, srv.Send(ctx, "contacts", Message{ID: "1", Session: ptr("a")}))
		r := must(client.AcceptSessionForSubscription(ctx, "contacts", "all", "a", nil))(t)
		check(t, r.Close(ctx))
	})
}

// TestReleasedSessionKeepsOrder: closing a receiver returns its messages at once, in order and
// uncounted; abandoning returns a message to its place.
func TestReleasedSessionKeepsOrder(t *testing.T) {
	bubble(t, &Options{Topology: outboxTopology()}, func(t *testing.T, ctx context.Context, _ *Server, client *azservicebus.Client) {
		sender := must(client.NewSender("contacts", nil))(t)
		var all []*azservicebus.Message
		for i := range 10 {
			all = append(all, message("a", i))
		}
		sendBatch(ctx, t, sender, all...)
		next := 0
		for next < 10 {
			r := must(client.AcceptNextSessionForSubscription(ctx, "contacts", "all", nil))(t)
			got := must(r.ReceiveMessages(ctx, 4, nil))(t)
			for i, m := range got {
				if want := fmt.Sprintf("a-%d", next+i); m.MessageID != want || m.DeliveryCount != 1 {
					t.Fatalf("received %s for the %d. time, want %s for the first", m.MessageID, m.DeliveryCount, want)
				}
			}
			check(t, r.CompleteMessage(ctx, got[0], nil))
			next++
			check(t, r.Close(ctx)) // the others are released
		}
	})
}

// TestExpiredToken: a link ends when its token expires.
func TestExpiredToken(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		nc := must(srv.Dial(ctx))(t)
		conn := must(goamqp.NewConn(ctx, nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypeAnonymous()}))(t)
		session := must(conn.NewSession(ctx, nil))(t)
		putToken(ctx, t, session, "sb://host/q", sign(t, "sb://host/q", time.Now().Add(time.Minute)))
		sender := must(session.NewSender(ctx, "q", nil))(t)
		check(t, sender.Send(ctx, goamqp.NewMessage(nil), nil))
		time.Sleep(2 * time.Minute)
		err := sender.Send(ctx, goamqp.NewMessage(nil), nil)
		if c := condition(t, err); c != goamqp.ErrCondUnauthorizedAccess {
			t.Errorf("condition %s", c)
		}
		_ = conn.Close()
	})
}

// TestReceiveBySequenceNumberNeedsItsMode: a request for deferred messages that does not say how they
// are settled is refused. To guess "receive and delete" would lose them.
func TestReceiveBySequenceNumberNeedsItsMode(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "q", Message{ID: "a"}))
		r := must(client.NewReceiverForQueue("q", nil))(t)
		m := must(r.ReceiveMessages(ctx, 1, nil))(t)
		check(t, r.DeferMessage(ctx, m[0], nil))
		conn, session := dial(ctx, t, srv, nil)
		replies := must(session.NewReceiver(ctx, "q/$management", &goamqp.ReceiverOptions{TargetAddress: "replies"}))(t)
		requests := must(session.NewSender(ctx, "q/$management", nil))(t)
		for _, mode := range []any{nil, uint32(2), "1", int32(-1)} {
			body := map[string]any{"sequence-numbers": []int64{*m[0].SequenceNumber}}
			if mode != nil {
				body["receiver-settle-mode"] = mode
			}
			to := "replies"
			check(t, requests.Send(ctx, &goamqp.Message{
				Properties:            &goamqp.MessageProperties{MessageID: "1", ReplyTo: &to},
				ApplicationProperties: map[string]any{"operation": "com.microsoft:receive-by-sequence-number"},
				Value:                 body,
			}, nil))
			reply := must(replies.Receive(ctx, nil))(t)
			check(t, replies.AcceptMessage(ctx, reply))
			if status := reply.ApplicationProperties["statusCode"]; status != int32(400) {
				t.Errorf("mode %v: status %v, want 400", mode, status)
			}
			if left := must(srv.Peek("q", 10))(t); len(left) != 1 || left[0].State != "deferred" {
				t.Fatalf("mode %v: the message is lost: %v", mode, left)
			}
		}
		_ = conn.Close()
	})
}
