package relayservice_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/relayservice"
	"feedbox/infrastructure/servicebus"
)

// world is a store with its containers and a broker with a topic.
type world struct {
	store *azcosmos.Client
	bus   *servicebus.Client
	dev   *busemu.Server
}

func newWorld(t *testing.T, containers ...string) *world {
	t.Helper()
	emulator := cosmosemu.StartT(t, nil)
	for _, name := range containers {
		props := cosmosemu.ContainerProps{ID: name, PartitionKey: []string{cosmos.PartitionKeyPath}}
		switch name {
		case "data":
			props.DefaultTTL = -1
		case "leases":
			props.PartitionKey = []string{"/id"}
		}
		must(t, emulator.CreateContainer("shop", props))
	}
	w := &world{}
	var err error
	o := cosmosfeed.ClientOptions(nil)
	o.Transport = emulator.HTTPClient()
	w.store, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{
		Transport: o.Transport, PerCallPolicies: o.PerCallPolicies,
	}})
	must(t, err)
	t.Cleanup(w.store.Close)
	w.dev = busemu.StartT(t)
	must(t, w.dev.CreateTopic(t.Context(), busemu.Topic{
		Name: "orders", RequiresDuplicateDetection: true, Subscriptions: []busemu.Subscription{{Name: "all", RequiresSession: true}},
	}))
	w.bus, err = servicebus.NewClient(servicebus.ClientConfig{ConnectionString: w.dev.ConnectionString()})
	must(t, err)
	t.Cleanup(func() { _ = w.bus.Close(context.Background()) })
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestARelayWithoutFxAndConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data", "leases", "parked")
	relay, err := relayservice.New(w.store, w.bus, &relayservice.Options{
		Database: "shop", Topic: "orders", Expiry: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()

	data, err := w.store.NewContainer("shop", "data")
	must(t, err)
	outbox, err := cosmos.NewOutbox(data, nil)
	must(t, err)
	_, err = outbox.Batch("order-7").Put(map[string]any{"id": "order-7", "total": 5}, "").Emit("OrderPlacedEvent", map[string]int{"total": 5}).Commit(t.Context())
	must(t, err)
	session, err := w.dev.Client().AcceptSessionForSubscription(t.Context(), "orders", "all", "order-7", nil)
	must(t, err)
	messages, err := session.ReceiveMessages(t.Context(), 1, nil)
	must(t, err)
	if len(messages) != 1 || *messages[0].Subject != "OrderPlacedEvent" || !strings.HasPrefix(string(messages[0].Body), `{"total":5,`) {
		t.Errorf("received %+v", messages)
	}
	must(t, session.Close(t.Context()))
	if err := relay.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// A relay whose containers are missing says which, before it takes a lease.
func TestARelayVerifiesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data")
	relay, err := relayservice.New(w.store, w.bus, &relayservice.Options{Database: "shop", Topic: "orders"})
	must(t, err)
	if err := relay.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"leases" does not exist`) || !strings.Contains(err.Error(), `"parked" does not exist`) {
		t.Errorf("ran: %v", err)
	}
}

func TestWrongOptionsAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data")
	for says, o := range map[string]*relayservice.Options{
		"Database is missing": {Topic: "orders"}, "Topic is missing": {Database: "shop"},
		"three different containers": {Database: "shop", Topic: "orders", Leases: "data"},
		"Renew":                      {Database: "shop", Topic: "orders", Renew: time.Hour},
	} {
		if _, err := relayservice.New(w.store, w.bus, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want something with %q", err, says)
		}
	}
	if _, err := relayservice.New(nil, nil, nil); err == nil || !strings.Contains(err.Error(), "both clients") {
		t.Errorf("without clients: %v", err)
	}
}
