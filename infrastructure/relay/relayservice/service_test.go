package relayservice_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
	"feedbox/infrastructure/store/document"
)

// world is a store with its containers and a broker with a topic.
type world struct {
	store *azcosmos.Client
	bus   *servicebus.Client
	dev   *busemu.Server
}

func newWorld(t *testing.T, containers ...string) *world {
	t.Helper()
	return newWorldOn(t, nil, containers...)
}

func newWorldOn(t *testing.T, o *cosmosemu.Options, containers ...string) *world {
	t.Helper()
	emulator := cosmosemu.StartT(t, o)
	for _, name := range containers {
		props := cosmosemu.ContainerProps{ID: name, PartitionKey: []string{cosmos.PartitionKeyPath}}
		switch name {
		case "data":
			props.DefaultTTL = -1
		case "leases":
			props.PartitionKey = []string{"/id"}
		case "invoices":
			props.PartitionKey, props.DefaultTTL = []string{"/customerId"}, -1
		}
		must(t, emulator.CreateContainer("shop", props))
	}
	w := &world{}
	var err error
	w.store, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: emulator.HTTPClient()}})
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

// relay is a relay of the world with short leases.
func (w *world) relay(t *testing.T, from *cosmosrelay.Options, to *servicebus.RelayBrokerOptions) *relayservice.Service {
	t.Helper()
	store, err := cosmosrelay.NewStore(w.store, from)
	must(t, err)
	broker, err := servicebus.NewRelayBroker(w.bus, to)
	must(t, err)
	relay, err := relayservice.New(store, broker, &relayservice.Options{Expiry: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return relay
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRelayAsALibrary(t *testing.T) {
	t.Parallel()
	checkRelay(t, newWorld(t, "data", "leases", "parked"))
}

// At the first start the service may still be creating the containers.
func TestFirstStartAwaitsTheCreationOfContainers(t *testing.T) {
	t.Parallel()
	checkRelay(t, newWorldOn(t, &cosmosemu.Options{CreationDelay: 2 * time.Second}, "data", "leases", "parked"))
}

// checkRelay starts a relay and checks that it sends an event.
func checkRelay(t *testing.T, w *world) {
	t.Helper()
	relay := w.relay(t, &cosmosrelay.Options{Database: "shop"}, &servicebus.RelayBrokerOptions{Topic: "orders"})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()

	data, err := w.store.NewContainer("shop", "data")
	must(t, err)
	outbox, err := cosmos.NewOutbox(data, nil)
	must(t, err)
	must(t, outbox.Verify(t.Context()))
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

// Documents of somebody else's, with other names, are relayed as their contract says; events
// of some subjects go to another topic, and the order of a key is kept over both.
func TestRelayOfForeignDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "leases", "parked", "invoices")
	must(t, w.dev.CreateTopic(t.Context(), busemu.Topic{
		Name: "audit", RequiresDuplicateDetection: true, Subscriptions: []busemu.Subscription{{Name: "all", RequiresSession: true}},
	}))
	relay := w.relay(t, &cosmosrelay.Options{
		Database: "shop", Data: "invoices", Contract: document.EventContract{
			Type: "kind", Types: []string{"issued", "fact"}, ID: "id", Key: "customerId", Body: document.WholeDocument,
			Subject: "what", Sequence: "n", Version: "v", CreatedAt: "at",
		},
	}, &servicebus.RelayBrokerOptions{Topic: "orders", Topics: map[string]string{"Voided": "audit"}, Source: "urn:invoices", PackKeys: true})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	data, err := w.store.NewContainer("shop", "invoices")
	must(t, err)
	write := func(key, id, kind, what string, n int) {
		t.Helper()
		document := fmt.Sprintf(`{"id":%q,"customerId":%q,"kind":%q,"what":%q,"n":%d,"at":"2026-03-01T12:00:00Z"}`, id, key, kind, what, n)
		_, err := data.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), []byte(document), nil)
		must(t, err)
	}
	for _, key := range []string{"c7", "c8"} {
		write(key, key+"1", "issued", "Issued", 1)
		write(key, key+"2", "fact", "Paid", 2)
		write(key, key+"3", "note", "Nothing", 3)
		write(key, key+"4", "fact", "Voided", 3)
		write(key, key+"5", "fact", "Paid", 4)
	}
	for topic, want := range map[string]string{"orders": "Issued Paid Paid", "audit": "Voided"} {
		for _, key := range []string{"c7", "c8"} {
			session, err := w.dev.Client().AcceptSessionForSubscription(t.Context(), topic, "all", key, nil)
			must(t, err)
			var got []string
			for len(got) < len(strings.Fields(want)) {
				messages, err := session.ReceiveMessages(t.Context(), 5, nil)
				must(t, err)
				for _, m := range messages {
					got = append(got, *m.Subject)
					if m.ApplicationProperties["cloudEvents_source"] != "urn:invoices" || !strings.Contains(string(m.Body), `"customerId":"`+key+`"`) {
						t.Errorf("message %s of %v", m.Body, m.ApplicationProperties)
					}
					must(t, session.CompleteMessage(t.Context(), m, nil))
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s of %s: %v; want %s", topic, key, got, want)
			}
			must(t, session.Close(t.Context()))
		}
	}
	// An event that cannot be sent is parked, not dropped.
	write("c9", "c91", "fact", "", 1)
	parked, err := w.store.NewContainer("shop", "parked")
	must(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for found := 0; found == 0; time.Sleep(20 * time.Millisecond) {
		page, err := parked.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKeyString("c9"), nil).NextPage(soon)
		must(t, err)
		found = len(page.Items)
	}
	stop()
	must(t, <-done)
}

// A relay whose containers are missing says which, before it takes a lease.
func TestRunVerifiesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data")
	relay := w.relay(t, &cosmosrelay.Options{Database: "shop"}, &servicebus.RelayBrokerOptions{Topic: "orders"})
	if err := relay.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"leases" does not exist`) || !strings.Contains(err.Error(), `"parked" does not exist`) {
		t.Errorf("ran: %v", err)
	}
}

func TestInvalidOptionsAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data")
	for says, o := range map[string]*cosmosrelay.Options{
		"Database is missing":         nil,
		"three different containers":  {Database: "shop", Leases: "data"},
		"give the name of one member": {Database: "shop", Contract: document.EventContract{Subject: "data.action"}},
		"two of its members":          {Database: "shop", Contract: document.EventContract{ID: "data"}},
	} {
		if _, err := cosmosrelay.NewStore(w.store, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want something with %q", err, says)
		}
	}
	if _, err := cosmosrelay.NewStore(nil, &cosmosrelay.Options{Database: "shop"}); err == nil || !strings.Contains(err.Error(), "client") {
		t.Errorf("without a client: %v", err)
	}
	if _, err := servicebus.NewRelayBroker(w.bus, nil); err == nil || !strings.Contains(err.Error(), "Topic") {
		t.Errorf("without a topic: %v", err)
	}
	store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
	must(t, err)
	broker, err := servicebus.NewRelayBroker(w.bus, &servicebus.RelayBrokerOptions{Topic: "orders"})
	must(t, err)
	if _, err := relayservice.New(store, broker, &relayservice.Options{Renew: time.Hour}); err == nil || !strings.Contains(err.Error(), "Renew") {
		t.Errorf("a slow renewal: %v", err)
	}
	if _, err := relayservice.New(relayport.Store{}, relayport.Broker{}, nil); err == nil || !strings.Contains(err.Error(), "the store needs") || !strings.Contains(err.Error(), "the broker needs") {
		t.Errorf("without ports: %v", err)
	}
}
