package busemu

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// outboxTopology is the topology of the outbox relay: a topic with duplicate detection and a
// subscription with sessions.
func outboxTopology() *Topology {
	return &Topology{Topics: []Topic{{
		Name: "contacts", RequiresDuplicateDetection: true,
		Subscriptions: []Subscription{{Name: "all", RequiresSession: true}},
	}}}
}

// TestOutboxPath: the SDK sends a batch to a topic; session receivers get each
// session's messages in order, once, and complete them.
func TestOutboxPath(t *testing.T) {
	outboxPath(t, startT(t, &Options{Topology: outboxTopology()}))
}

func TestOutboxPathInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outboxPath(t, startT(t, &Options{Addr: "-", AdminAddr: "-", Topology: outboxTopology()}))
	})
}

func outboxPath(t *testing.T, srv *Server) {
	ctx := context.Background()
	client := clientT(t, srv)
	sender := must(client.NewSender("contacts", nil))(t)
	sendBatch(ctx, t, sender, message("a", 1), message("b", 1), message("a", 2))
	sendBatch(ctx, t, sender, message("a", 2), message("a", 3)) // a-2 is a duplicate

	for _, want := range []struct {
		session string
		ids     []string
	}{{"a", []string{"a-1", "a-2", "a-3"}}, {"b", []string{"b-1"}}} {
		receiver := must(client.AcceptNextSessionForSubscription(ctx, "contacts", "all", nil))(t)
		if receiver.SessionID() != want.session {
			t.Fatalf("accepted session %q, want %q", receiver.SessionID(), want.session)
		}
		if !receiver.LockedUntil().After(time.Now()) {
			t.Errorf("session locked until %v", receiver.LockedUntil())
		}
		var got []string
		for len(got) < len(want.ids) {
			for _, m := range must(receiver.ReceiveMessages(ctx, len(want.ids)-len(got), allAtOnce))(t) {
				if string(m.Body) != m.MessageID || *m.SessionID != want.session || *m.Subject != "Created" || m.DeliveryCount != 1 {
					t.Errorf("received %+v", m)
				}
				got = append(got, m.MessageID)
				check(t, receiver.CompleteMessage(ctx, m, nil))
			}
		}
		for i := range got {
			if got[i] != want.ids[i] {
				t.Errorf("session %s: received %v, want %v", want.session, got, want.ids)
				break
			}
		}
		check(t, receiver.Close(ctx))
	}

	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if r, err := client.AcceptNextSessionForSubscription(short, "contacts", "all", nil); err == nil {
		t.Errorf("session %q has messages left", r.SessionID())
	}
	check(t, sender.Close(ctx))
	check(t, client.Close(ctx))
}

// TestAbandonAndDeadLetter: an abandoned message is redelivered with a higher delivery count;
// a dead-lettered one is in the dead-letter queue with its reason.
func TestAbandonAndDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		srv := startT(t, &Options{Addr: "-", AdminAddr: "-", Topology: outboxTopology()})
		client := clientT(t, srv)
		sendBatch(ctx, t, must(client.NewSender("contacts", nil))(t), message("a", 1))
		receiver := must(client.AcceptSessionForSubscription(ctx, "contacts", "all", "a", nil))(t)
		m := must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
		check(t, receiver.AbandonMessage(ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"tried": int64(1)}}))
		m = must(receiver.ReceiveMessages(ctx, 1, nil))(t)[0]
		if m.DeliveryCount != 2 || m.ApplicationProperties["tried"] != int64(1) {
			t.Errorf("after abandon: delivery count %d, properties %v", m.DeliveryCount, m.ApplicationProperties)
		}
		check(t, receiver.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{Reason: ptr("bad"), ErrorDescription: ptr("very")}))
		check(t, receiver.Close(ctx))

		dlq := must(client.NewReceiverForSubscription("contacts", "all", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}))(t)
		m = must(dlq.ReceiveMessages(ctx, 1, nil))(t)[0]
		if m.MessageID != "a-1" || *m.DeadLetterReason != "bad" || *m.DeadLetterErrorDescription != "very" {
			t.Errorf("dead-lettered: %+v", m)
		}
		check(t, dlq.CompleteMessage(ctx, m, nil))
		check(t, client.Close(ctx))
	})
}
