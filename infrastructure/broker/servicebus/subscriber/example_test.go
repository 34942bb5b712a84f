package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
)

// must panics if err is not nil.
func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// event returns a message as the relay sends it, with the contact as session. The sequence counts the
// events of the contact.
func event(id, contact, action string, sequence int64) *azservicebus.Message {
	return &azservicebus.Message{
		MessageID: &id, SessionID: &contact, Subject: &action, Body: []byte(`{}`),
		ApplicationProperties: map[string]any{"sequence": sequence},
	}
}

// contacts starts an emulator with a topic and a session subscription, and sends events to the topic.
func contacts(events ...*azservicebus.Message) (namespace servicebus.ClientConfig, client *azservicebus.Client, end func()) {
	billing := busemu.Subscription{Name: "billing"}
	billing.RequiresSession = true
	srv, err := busemu.Start(&busemu.Options{AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{
		{Name: "contacts", Subscriptions: []busemu.Subscription{billing}},
	}}})
	must(err)
	// In production use the name of the namespace and a credential of azidentity.
	namespace.ConnectionString = srv.ConnectionString()
	client = srv.Client()
	sender, err := client.NewSender("contacts", nil)
	must(err)
	for _, e := range events {
		must(sender.SendMessage(context.Background(), e, nil))
	}
	return namespace, client, func() { must(srv.Close()) }
}

// A processor handles several sessions in parallel, and the events of a contact in order.
func Example() {
	namespace, _, end := contacts(
		event("e1", "ann", "Created", 1), event("e2", "ann", "Renamed", 2), event("e3", "ann", "Deleted", 3))
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription("contacts", "billing"), func(_ context.Context, e *consumer.Event) error {
		fmt.Println(e.Key, e.Sequence, e.Action)
		if e.Sequence == 3 {
			stop() // Run waits for this handler and returns
		}
		return nil
	}, &subscriber.SessionOptions{Sessions: 4})
	must(err)
	fmt.Println("ended:", p.Run(ctx))
	// Output:
	// ann 1 Created
	// ann 2 Renamed
	// ann 3 Deleted
	// ended: <nil>
}

// An event that cannot be handled is moved to the dead-letter queue with a reason. Later events are
// handled.
func ExampleDeadLetter() {
	namespace, client, end := contacts(event("e1", "ann", "Exploded", 1), event("e2", "ann", "Renamed", 2))
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription("contacts", "billing"), func(_ context.Context, e *consumer.Event) error {
		if e.Action == "Exploded" {
			return consumer.DeadLetter("unknown_action", errors.New("there is no action "+e.Action))
		}
		fmt.Println("handled:", e.Action)
		stop()
		return nil
	}, &subscriber.SessionOptions{Sessions: 1})
	must(err)
	must(p.Run(ctx))

	dead, err := client.NewReceiverForSubscription("contacts", "billing", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	must(err)
	letters, err := dead.ReceiveMessages(context.Background(), 1, nil)
	must(err)
	fmt.Printf("dead letter: %s, %s: %s\n", letters[0].MessageID, *letters[0].DeadLetterReason, *letters[0].DeadLetterErrorDescription)
	// Output:
	// handled: Renamed
	// dead letter: e1, unknown_action: there is no action Exploded
}

// The inbox stores the last handled event of each contact and detects duplicates. This one is in memory;
// package cosmosinbox stores it in Cosmos DB.
func ExampleInbox() {
	namespace, _, end := contacts(
		event("e1", "ann", "Created", 1), event("e2", "ann", "Renamed", 2),
		event("e1", "ann", "Created", 1), // repeated after the duplicate detection window
		event("e3", "ann", "Deleted", 3))
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	handle := func(context.Context, *consumer.Event) error { return nil }
	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription("contacts", "billing"), handle, &subscriber.SessionOptions{
		Inbox: consumer.NewMemoryInbox(1000),
		Observe: func(_ context.Context, o consumer.Outcome) {
			fmt.Println(o.Event.ID, o.Verdict, o.Action)
			if o.Event.Sequence == 3 {
				stop()
			}
		},
	})
	must(err)
	must(p.Run(ctx))
	// Output:
	// e1 fresh handled
	// e2 fresh handled
	// e1 stale dropped
	// e3 fresh handled
}
