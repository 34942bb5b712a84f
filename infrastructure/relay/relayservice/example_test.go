package relayservice_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// A relay between the emulators: an event that is committed to Cosmos DB arrives at a
// subscription of the topic.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	db, err := cosmosemu.Start(nil)
	check(err)
	defer db.Close()
	check(db.CreateContainer("shop", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}))
	check(db.CreateContainer("shop", cosmosemu.ContainerProps{ID: "leases", PartitionKey: []string{"/id"}}))
	check(db.CreateContainer("shop", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
	bus, err := busemu.Start(nil)
	check(err)
	defer bus.Close()
	check(bus.CreateTopic(ctx, busemu.Topic{
		Name: "orders", RequiresDuplicateDetection: true, Subscriptions: []busemu.Subscription{{Name: "billing", RequiresSession: true}},
	}))

	store, err := cosmosrelay.NewStore(db.Client(), &cosmosrelay.Options{Database: "shop"})
	check(err)
	sender, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: bus.ConnectionString()})
	check(err)
	defer func() { _ = sender.Close(ctx) }()
	broker, err := servicebus.NewRelayBroker(sender, &servicebus.RelayBrokerOptions{Topic: "orders"})
	check(err)
	relay, err := relayservice.New(store, broker, &relayservice.Options{Logger: slog.New(slog.DiscardHandler)})
	check(err)
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- relay.Run(running) }()

	data, err := db.Client().NewContainer("shop", "data")
	check(err)
	outbox, err := cosmos.NewOutbox(data, nil)
	check(err)
	_, err = outbox.Batch("order-7").Emit("OrderPlacedEvent", map[string]int{"total": 5}).Commit(ctx)
	check(err)

	session, err := bus.Client().AcceptSessionForSubscription(ctx, "orders", "billing", "order-7", nil)
	check(err)
	messages, err := session.ReceiveMessages(ctx, 1, nil)
	check(err)
	fmt.Println("received", *messages[0].Subject, "of", *messages[0].SessionID)
	check(session.Close(ctx))
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// received OrderPlacedEvent of order-7
	// stopped: <nil>
}
