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
		Name:            "orders",
		TopicProperties: busemu.TopicProperties{RequiresDuplicateDetection: true},
		Subscriptions:   []busemu.Subscription{{Name: "all", SubscriptionProperties: busemu.SubscriptionProperties{RequiresSession: true}}},
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

// A fault: the message is accepted, but the client never hears of it. The SDK
// sends again, and duplicate detection drops the second copy.
func ExampleServer_Fail() {
	ctx := context.Background()
	srv, err := busemu.Start(&busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Queues: []busemu.Queue{{
		Name: "q", QueueProperties: busemu.QueueProperties{RequiresDuplicateDetection: true},
	}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	srv.Fail(1, busemu.Call{Operation: busemu.OpSend, Entity: "q"}, busemu.Fault{DropReply: true, Disconnect: true})

	o := srv.ClientOptions() // connects in memory
	o.RetryOptions.RetryDelay = time.Millisecond
	client, err := azservicebus.NewClientFromConnectionString(srv.ConnectionString(), o)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
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
