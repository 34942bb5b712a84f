package busemu_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
)

// The vendor's SDK sends to a topic and receives from a session.
func Example() {
	ctx := context.Background()
	srv, err := busemu.Start(&busemu.Options{Topology: &busemu.Topology{Topics: []busemu.Topic{{
		Name:                       "orders",
		RequiresDuplicateDetection: true,
		Subscriptions:              []busemu.Subscription{{Name: "all", RequiresSession: true}},
	}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	client, err := azservicebus.NewClientFromConnectionString(srv.ConnectionString(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	sender, err := client.NewSender("orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	id, session := "event-1", "customer-7"
	for range 2 { // the second copy is a duplicate
		if err := sender.SendMessage(ctx, &azservicebus.Message{MessageID: &id, SessionID: &session, Body: []byte("ordered")}, nil); err != nil {
			log.Fatal(err)
		}
	}
	receiver, err := client.AcceptNextSessionForSubscription(ctx, "orders", "all", nil)
	if err != nil {
		log.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(ctx, 10, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		fmt.Println(receiver.SessionID(), m.MessageID, string(m.Body))
		if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
			log.Fatal(err)
		}
	}
	counters, err := srv.Counters("orders")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("duplicates:", counters.Duplicates)
	// Output:
	// customer-7 event-1 ordered
	// duplicates: 1
}

// StartT closes the emulator with the test.
func ExampleStartT() {
	t := &recorder{} // in place of your test's *testing.T
	defer t.end()
	srv := busemu.StartT(t)
	if err := srv.CreateQueue(context.Background(), busemu.Queue{Name: "orders"}); err != nil {
		t.Fatalf("%v", err)
	}
	err := srv.Send(context.Background(), "orders", busemu.Message{ID: "1"}) // without AMQP
	waiting, _ := srv.Peek("orders", 10)
	fmt.Println(len(waiting), "message,", err)
	// Output: 1 message, <nil>
}

// withQueue starts an emulator with a queue, and an SDK client that reaches it in memory.
func withQueue(q busemu.Queue) (srv *busemu.Server, client *azservicebus.Client, end func()) {
	srv, err := busemu.Start(&busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Queues: []busemu.Queue{q}}})
	if err != nil {
		log.Fatal(err)
	}
	o := srv.ClientOptions()
	o.RetryOptions.RetryDelay = time.Millisecond
	client, err = azservicebus.NewClientFromConnectionString(srv.ConnectionString(), o)
	if err != nil {
		log.Fatal(err)
	}
	return srv, client, func() {
		_ = client.Close(context.Background())
		_ = srv.Close()
	}
}

// A message that is abandoned too often goes to the dead-letter queue.
func Example_deadLetters() {
	ctx := context.Background()
	srv, client, end := withQueue(busemu.Queue{Name: "q", MaxDeliveryCount: 2})
	defer end()
	if err := srv.Send(ctx, "q", busemu.Message{ID: "poison"}); err != nil {
		log.Fatal(err)
	}
	receiver, err := client.NewReceiverForQueue("q", nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		messages, err := receiver.ReceiveMessages(ctx, 1, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := receiver.AbandonMessage(ctx, messages[0], nil); err != nil {
			log.Fatal(err)
		}
	}
	dead, err := srv.Peek("q/$DeadLetterQueue", 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range dead {
		fmt.Println(m.ID, m.DeadLetter.Reason)
	}
	// Output: poison MaxDeliveryCountExceeded
}

// The clock moves on demand: a message scheduled for tomorrow is due now.
func ExampleServer_Advance() {
	ctx := context.Background()
	srv, client, end := withQueue(busemu.Queue{Name: "q"})
	defer end()
	if err := srv.Send(ctx, "q", busemu.Message{ID: "reminder", ScheduledAt: srv.Now().Add(24 * time.Hour)}); err != nil {
		log.Fatal(err)
	}
	srv.Advance(25 * time.Hour)
	receiver, err := client.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(messages[0].MessageID)
	// Output: reminder
}

// A fault: the message is stored, but its answer is lost. The SDK sends again, and duplicate
// detection drops the second copy.
func ExampleServer_Control() {
	ctx := context.Background()
	srv, client, end := withQueue(busemu.Queue{Name: "q", RequiresDuplicateDetection: true})
	defer end()
	srv.Control(busemu.OpSend, busemu.Times(1, busemu.Fault{Execute: true, Loss: busemu.Reset}))
	sender, err := client.NewSender("q", nil)
	if err != nil {
		log.Fatal(err)
	}
	id := "event-1"
	if err := sender.SendMessage(ctx, &azservicebus.Message{MessageID: &id}, nil); err != nil {
		log.Fatal(err)
	}
	messages, err := srv.Peek("q", 10)
	if err != nil {
		log.Fatal(err)
	}
	counters, _ := srv.Counters("q")
	fmt.Println(len(messages), "message,", counters.Duplicates, "duplicate dropped")
	// Output: 1 message, 1 duplicate dropped
}

// When passes calls that do not match.
func ExampleWhen() {
	ctx := context.Background()
	srv, client, end := withQueue(busemu.Queue{Name: "q"})
	defer end()
	if err := srv.CreateQueue(ctx, busemu.Queue{Name: "other"}); err != nil {
		log.Fatal(err)
	}
	srv.Control(busemu.OpSend, busemu.When(busemu.Call{Entity: "other"}, busemu.Always(
		busemu.Fault{Err: &busemu.Error{Condition: busemu.QuotaExceeded, Description: "The queue is full."}})))
	for _, queue := range []string{"q", "other"} {
		sender, err := client.NewSender(queue, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(queue, sender.SendMessage(ctx, &azservicebus.Message{}, nil) == nil)
	}
	// Output:
	// q true
	// other false
}
