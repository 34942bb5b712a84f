package busemu

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
)

// bubble runs a test in a synctest bubble with an emulator that has no sockets.
func bubble(t *testing.T, o *Options, test func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o == nil {
			o = &Options{}
		}
		o.Addr, o.AdminAddr = "-", "-"
		srv := startT(t, o)
		client := clientT(t, srv)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		test(t, ctx, srv, client)
		check(t, client.Close(ctx))
	})
}

func queues(names ...string) *Options {
	t := &Topology{}
	for _, name := range names {
		t.Queues = append(t.Queues, Queue{Name: name})
	}
	return &Options{Topology: t}
}

func condition(t *testing.T, err error) goamqp.ErrCond {
	t.Helper()
	var linkErr *goamqp.LinkError
	if errors.As(err, &linkErr) && linkErr.RemoteErr != nil {
		return linkErr.RemoteErr.Condition
	}
	var amqpErr *goamqp.Error
	if !errors.As(err, &amqpErr) {
		t.Fatalf("%v (%T) carries no AMQP error", err, err)
	}
	return amqpErr.Condition
}

func body(s string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(s), MessageID: &s}
}

// TestServerBusyIsRetried: the SDK sends again on the same link until the broker accepts.
func TestServerBusyIsRetried(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		srv.Control(OpSend, When(Call{Entity: "q"}, Times(2, Fault{Err: &Error{Condition: ServerBusy, Description: "not now"}})))
		sender := must(client.NewSender("q", nil))(t)
		start := time.Now()
		check(t, sender.SendMessage(ctx, body("a"), nil))
		if waited := time.Since(start); waited < 8*time.Second {
			t.Errorf("sent after %v: the SDK backs off about 4 and 12 s", waited)
		}
		if c := must(srv.Counters("q"))(t); c.Accepted != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// TestLostDisposition: the message is stored but its disposition is lost with the connection.
// The SDK sends again, and duplicate detection drops the second copy.
func TestLostDisposition(t *testing.T) {
	o := &Options{Topology: &Topology{Queues: []Queue{{Name: "q", RequiresDuplicateDetection: true}}}}
	bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		srv.Control(OpSend, Times(1, Fault{Execute: true, Loss: Reset}))
		sender := must(client.NewSender("q", nil))(t)
		sendBatch(ctx, t, sender, body("a"), body("b"))
		if c := must(srv.Counters("q"))(t); c.Accepted != 4 || c.Duplicates != 2 {
			t.Errorf("%+v", c)
		}
		if left := must(srv.Peek("q", 10))(t); len(left) != 2 {
			t.Errorf("%d messages in the queue", len(left))
		}
	})
}

func TestQuotaIsReturnedAtOnce(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		sender := must(client.NewSender("q", nil))(t)
		check(t, sender.SendMessage(ctx, body("a"), nil))
		check(t, srv.SetQuota("q", 10))
		start := time.Now()
		err := sender.SendMessage(ctx, body("b"), nil)
		if c := condition(t, err); c != goamqp.ErrCondResourceLimitExceeded || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		check(t, srv.SetQuota("q", 0))
		check(t, sender.SendMessage(ctx, body("b"), nil))
	})
}

func TestDisabledEntity(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.SetStatus(ctx, "q", StatusSendDisabled))
		sender := must(client.NewSender("q", nil))(t)
		if c := condition(t, sender.SendMessage(ctx, body("a"), nil)); c != "com.microsoft:entity-disabled" {
			t.Errorf("condition %s", c)
		}
		check(t, srv.SetStatus(ctx, "q", StatusActive))
		check(t, sender.SendMessage(ctx, body("a"), nil))
	})
}

// TestDelayKeepsOrder: a delayed send also delays the later sends on its link.
func TestDelayKeepsOrder(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		srv.Control(OpSend, Times(1, Fault{Delay: 5 * time.Second}))
		sender := must(client.NewSender("q", nil))(t)
		first := make(chan error, 1)
		start := time.Now()
		go func() { first <- sender.SendMessage(ctx, body("a"), nil) }()
		synctest.Wait()
		check(t, sender.SendMessage(ctx, body("b"), nil))
		check(t, <-first)
		if d := time.Since(start); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("took %v", d)
		}
		got := must(srv.Peek("q", 2))(t)
		if len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
			t.Errorf("queue holds %+v", got)
		}
	})
}

func TestDelayedDeliveryAndDetachedReceiver(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "q", Message{ID: "a"}, Message{ID: "b"}))
		srv.Control(OpDeliver, Times(1, Fault{Delay: 3 * time.Second}))
		receiver := must(client.NewReceiverForQueue("q", nil))(t)
		start := time.Now()
		got := must(receiver.ReceiveMessages(ctx, 2, nil))(t)
		if len(got) == 0 || time.Since(start) < 3*time.Second {
			t.Fatalf("%d messages after %v", len(got), time.Since(start))
		}
		check(t, receiver.CompleteMessage(ctx, got[0], nil))
		for len(got) < 2 {
			got = append(got, must(receiver.ReceiveMessages(ctx, 1, nil))(t)...)
		}
		// The link is detached: the SDK settles by $management on a new link.
		check(t, srv.Detach("q", nil))
		synctest.Wait()
		check(t, receiver.CompleteMessage(ctx, got[1], nil))
		if left := must(srv.Peek("q", 10))(t); len(left) != 0 {
			t.Errorf("left %+v", left)
		}
	})
}

// TestHeldSend: a held operation and the later ones on its link wait until Hold is closed.
func TestHeldSend(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		hold := make(chan struct{})
		srv.Control(OpSend, Times(1, Fault{Hold: hold}))
		sender := must(client.NewSender("q", nil))(t)
		sent := make(chan error, 2)
		for _, id := range []string{"a", "b"} {
			go func() { sent <- sender.SendMessage(ctx, body(id), nil) }()
			synctest.Wait()
		}
		if got := must(srv.Peek("q", 2))(t); len(got) != 0 {
			t.Errorf("stored while it was held: %+v", got)
		}
		close(hold)
		check(t, <-sent)
		check(t, <-sent)
		if got := must(srv.Peek("q", 2))(t); len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
			t.Errorf("queue holds %+v", got)
		}
		srv.Control(OpSend, Times(1, Fault{Hold: make(chan struct{})}))
		go func() { sent <- sender.SendMessage(ctx, body("c"), nil) }()
		synctest.Wait()
		check(t, srv.Close()) // does not wait for operations that are held for ever
		_ = client.Close(ctx)
		if err := <-sent; err == nil {
			t.Error("a send to a closed server was accepted")
		}
	})
}

// TestDetachAfterOrInsteadOfASend: Execute decides whether the message is stored; the SDK
// sends again on a new link.
func TestDetachAfterOrInsteadOfASend(t *testing.T) {
	for execute, want := range map[bool]int64{true: 2, false: 1} {
		bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
			srv.Control(OpSend, Times(1, Fault{Execute: execute, Detach: &Error{Condition: DetachForced, Description: "test"}}))
			sender := must(client.NewSender("q", nil))(t)
			check(t, sender.SendMessage(ctx, body("a"), nil))
			if c := must(srv.Counters("q"))(t); c.Accepted != want {
				t.Errorf("execute=%t: %+v", execute, c)
			}
		})
	}
}

// TestLossHidesARefusal: the refusal is lost too, so the SDK waits until its timeout.
func TestLossHidesARefusal(t *testing.T) {
	for _, op := range []Operation{OpSend, OpAttach, OpManagement} {
		bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
			srv.Control(op, Always(Fault{Err: &Error{Condition: ServerBusy}, Loss: Drop}))
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			sender := must(client.NewSender("q", nil))(t)
			err := sender.SendMessage(short, body("a"), nil)
			if op == OpManagement {
				_, err = sender.ScheduleMessages(short, []*azservicebus.Message{body("b")}, srv.Now().Add(time.Hour), nil)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s ended with %v", op, err)
			}
			want := 0
			if op == OpManagement {
				want = 1
			}
			if left := must(srv.Peek("q", 10))(t); len(left) != want {
				t.Errorf("%s was carried out: %+v", op, left)
			}
		})
	}
}

func TestLostSettlement(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "q", Message{ID: "a"}))
		receiver := must(client.NewReceiverForQueue("q", nil))(t)
		m := must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
		srv.Control(OpSettle, Times(1, Fault{Execute: true, Loss: Drop}))
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := receiver.CompleteMessage(short, m, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("completed with %v", err)
		}
		if left := must(srv.Peek("q", 10))(t); len(left) != 0 {
			t.Errorf("the settlement was not carried out: %+v", left)
		}
	})
}

func TestManagementFault(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "q", Message{ID: "a"}))
		receiver := must(client.NewReceiverForQueue("q", nil))(t)
		srv.Control(OpManagement, When(Call{Name: "peek-message"}, Times(1, Fault{Err: &Error{Condition: NotFound, Description: "gone"}})))
		if _, err := receiver.PeekMessages(ctx, 1, nil); err == nil {
			t.Error("peeked in spite of the fault")
		}
		if got := must(receiver.PeekMessages(ctx, 1, nil))(t); len(got) != 1 {
			t.Errorf("peeked %d", len(got))
		}
	})
}

// TestExpiredSession: the receiver gets session-lock-lost, and its message goes to the next
// receiver with a higher delivery count.
func TestExpiredSession(t *testing.T) {
	bubble(t, &Options{Topology: outboxTopology()}, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "contacts", Message{ID: "a-1", Session: ptr("a")}))
		receiver := must(client.AcceptSessionForSubscription(ctx, "contacts", "all", "a", nil))(t)
		m := must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
		check(t, srv.ExpireSession("contacts/Subscriptions/all", "a"))
		synctest.Wait()
		if err := receiver.CompleteMessage(ctx, m, nil); err == nil {
			t.Error("completed without the session")
		}
		check(t, receiver.Close(ctx))
		next := must(client.AcceptNextSessionForSubscription(ctx, "contacts", "all", nil))(t)
		if m := must(next.ReceiveMessages(ctx, 1, nil))(t)[0]; m.DeliveryCount != 2 {
			t.Errorf("delivery count %d", m.DeliveryCount)
		}
	})
}

// TestMovedClock: scheduled messages become due and messages expire when the broker's clock is
// moved; the client's clock does not move.
func TestMovedClock(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		check(t, srv.Send(ctx, "q", Message{ID: "later", ScheduledAt: srv.Now().Add(24 * time.Hour)}, Message{ID: "brief", TTL: time.Hour}))
		srv.Advance(2 * time.Hour)
		if got := must(srv.Peek("q", 10))(t); len(got) != 1 || got[0].State != "scheduled" {
			t.Fatalf("after 2 h: %+v", got)
		}
		srv.Advance(23 * time.Hour)
		receiver := must(client.NewReceiverForQueue("q", nil))(t)
		m := must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
		if m.MessageID != "later" {
			t.Errorf("received %s", m.MessageID)
		}
		check(t, receiver.CompleteMessage(ctx, m, nil))
	})
}

func TestDisconnectedClientRecovers(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		sender := must(client.NewSender("q", nil))(t)
		check(t, sender.SendMessage(ctx, body("a"), nil))
		srv.Disconnect()
		synctest.Wait()
		if n := srv.Connections(); n != 0 {
			t.Errorf("%d connections left", n)
		}
		check(t, sender.SendMessage(ctx, body("b"), nil))
	})
}

// TestExpiredTokens: a sender with an expired token gets an error at once. A new sender with a
// valid token works.
func TestExpiredTokens(t *testing.T) {
	bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		unauthorized := func(err error) {
			t.Helper()
			var e *azservicebus.Error
			if !errors.As(err, &e) || e.Code != azservicebus.CodeUnauthorizedAccess {
				t.Errorf("not refused as unauthorized: %v", err)
			}
		}
		sender := must(client.NewSender("q", nil))(t)
		check(t, sender.SendMessage(ctx, body("a"), nil))
		stop := srv.Control(OpPutToken, Times(100, Fault{Err: &Error{Condition: UnauthorizedAccess, Description: "ExpiredToken: The token is expired."}}))
		srv.ExpireTokens()
		synctest.Wait()
		unauthorized(sender.SendMessage(ctx, body("b"), nil))
		_ = sender.Close(ctx) // returns the same error
		sender = must(client.NewSender("q", nil))(t)
		unauthorized(sender.SendMessage(ctx, body("b"), nil))
		stop()
		check(t, sender.SendMessage(ctx, body("b"), nil))
		if c := must(srv.Counters("q"))(t); c.Accepted != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// TestFaultForOneSessionLeavesOthers: sends to one session are neither stored nor answered,
// while the same link serves the others. The hook sees the sessions of a call.
func TestFaultForOneSessionLeavesOthers(t *testing.T) {
	bubble(t, &Options{Topology: outboxTopology()}, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		remove := srv.Control(OpSend, func(c *Call) *Fault {
			if !slices.Contains(c.Sessions, "a") {
				return nil
			}
			return &Fault{Loss: Drop}
		})
		sender := must(client.NewSender("contacts", nil))(t)
		message := func(session, id string) *azservicebus.Message {
			m := body(id)
			m.SessionID = &session
			return m
		}
		for range 3 {
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			if err := sender.SendMessage(short, message("a", "a-1"), nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the ignored send ended with %v", err)
			}
			cancel()
			start := time.Now()
			check(t, sender.SendMessage(ctx, message("b", "b-1"), nil))
			if waited := time.Since(start); waited > time.Second {
				t.Errorf("another session waited for %v", waited)
			}
		}
		if c := must(srv.Counters("contacts"))(t); c.Accepted != 3 || c.Duplicates != 2 {
			t.Errorf("%+v", c)
		}
		remove()
		check(t, sender.SendMessage(ctx, message("a", "a-1"), nil))
		if c := must(srv.Counters("contacts"))(t); c.Accepted != 4 {
			t.Errorf("%+v", c)
		}
	})
}

// TestSendWithOtherOutcomeIsNotStored: a message that is neither accepted nor rejected is not
// stored. The SDK does not notice: it treats every outcome except rejected as success.
func TestSendWithOtherOutcomeIsNotStored(t *testing.T) {
	for _, outcome := range []Outcome{Released, Modified, Unsettled} {
		bubble(t, queues("q"), func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
			srv.Control(OpSend, Times(2, Fault{Outcome: outcome}))
			sender := must(client.NewSender("q", nil))(t)
			check(t, sender.SendMessage(ctx, body("a"), nil))
			sendBatch(ctx, t, sender, body("b"), body("c"))
			check(t, sender.SendMessage(ctx, body("d"), nil))
			if left := must(srv.Peek("q", 10))(t); len(left) != 1 || left[0].ID != "d" {
				t.Errorf("outcome %d: queue holds %+v", outcome, left)
			}
		})
	}
}
