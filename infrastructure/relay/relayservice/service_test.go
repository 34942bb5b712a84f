package relayservice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
	"feedbox/infrastructure/store/document"
	"feedbox/tests/testenv"
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

// relay is a relay of the world whose leases are taken over soon.
func (w *world) relay(t *testing.T, from *cosmosrelay.Options, to *servicebus.RelayBrokerOptions) *relayservice.Service {
	t.Helper()
	store, err := cosmosrelay.NewStore(w.store, from)
	must(t, err)
	broker, err := servicebus.NewRelayBroker(w.bus, to)
	must(t, err)
	relay, err := relayservice.New(store, broker, &relayservice.Options{Expiry: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)})
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
	soon, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

// shardWorld is a load of events, and the consumers of three topics in two namespaces.
type shardWorld struct {
	*world
	second   *busemu.Server
	secondly *servicebus.Client
	rnd      *rand.Rand // of the writer
	relays   int        // so far

	mu   sync.Mutex // guards the fields below
	run  verify.Run
	next map[string]int64  // sequence of each key, of the writer
	at   map[string]string // topics of each key, in the order of their first messages
}

func newShardWorld(t *testing.T) *shardWorld {
	t.Helper()
	w := &shardWorld{
		world: newWorld(t, "data", "leases", "parked"), second: busemu.StartT(t), rnd: rand.New(rand.NewPCG(testenv.Seed(t, "SHARDS_SEED", 1), 0)),
		next: map[string]int64{}, at: map[string]string{},
	}
	var err error
	w.secondly, err = servicebus.NewClient(servicebus.ClientConfig{ConnectionString: w.second.ConnectionString()})
	must(t, err)
	t.Cleanup(func() { _ = w.secondly.Close(context.Background()) })
	for topic, server := range map[string]*busemu.Server{"s0": w.dev, "s1": w.dev, "s2": w.second} {
		must(t, server.CreateTopic(t.Context(), busemu.Topic{
			Name: topic, RequiresDuplicateDetection: true, Subscriptions: []busemu.Subscription{{Name: "all", RequiresSession: true}},
		}))
		r, err := recorder.Start(t.Context(), server.ConnectionString(), topic, "all", 8, func(a recorder.Arrival) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.run.Messages = append(w.run.Messages, a.Message)
			if !strings.Contains(w.at[a.Session], topic) {
				w.at[a.Session] += topic
			}
		})
		must(t, err)
		t.Cleanup(r.Stop)
	}
	return w
}

// write writes events until stop is called, which waits for the last one.
func (w *shardWorld) write(t *testing.T) (stop func()) {
	t.Helper()
	data, err := w.store.NewContainer("shop", "data")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			key := fmt.Sprint("key-", w.rnd.IntN(24))
			w.next[key]++
			e := verify.Event{ID: fmt.Sprint(key, "-", w.next[key]), Key: key, Action: "E", Version: w.next[key], Sequence: w.next[key]}
			_, err := data.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), fmt.Appendf(nil,
				`{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"action":"E","sequence":%d,"aggregateVersion":%d}}`, e.ID, key, e.Sequence, e.Version), nil)
			if err != nil {
				t.Errorf("write event %s: %v", e.ID, err)
				return
			}
			w.mu.Lock()
			w.run.Events = append(w.run.Events, e)
			w.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
	return func() { cancel(); <-ended }
}

// eventually waits for a condition under the lock.
func (w *shardWorld) eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		ok, written, received := done(), len(w.run.Events), len(w.run.Messages)
		w.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute; %d events were written, %d received", what, written, received)
		}
	}
}

// start starts a relay to the first n shards. stop stops it; kill leaves the leases as they are.
func (w *shardWorld) start(t *testing.T, n int) (relay *relayservice.Service, stop, kill func()) {
	t.Helper()
	store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
	must(t, err)
	broker, err := servicebus.NewRelayBroker(w.bus, &servicebus.RelayBrokerOptions{Topic: "orders", Shards: []servicebus.Shard{
		{Name: "s0", Topic: "s0"}, {Name: "s1", Topic: "s1"}, {Name: "s2@second", Topic: "s2", Client: w.secondly},
	}[:n]})
	must(t, err)
	var dead atomic.Bool
	w.relays++
	relay, err = relayservice.New(store, broker, &relayservice.Options{
		Expiry: 10 * time.Second, Instance: fmt.Sprint("relay-", w.relays), DrainTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
		WrapLeases: func(s changefeed.LeaseStore) changefeed.LeaseStore { return mortal{s, &dead} },
	})
	must(t, err)
	if err := relay.Verify(t.Context()); err != nil {
		if _, changed := errors.AsType[*relayport.ShardsError](err); !changed {
			t.Fatal(err)
		}
		return nil, nil, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Relay(ctx) }()
	stop = func() { cancel(); must(t, <-ended) }
	return relay, stop, func() { dead.Store(true); cancel(); t.Log("killed: ", <-ended) }
}

// mortal is a lease store that takes no more writes of a dead relay.
type mortal struct {
	changefeed.LeaseStore
	dead *atomic.Bool
}

var errDead = errors.New("the relay is dead")

// Replace implements changefeed.LeaseStore.
func (m mortal) Replace(ctx context.Context, record changefeed.Record) (string, error) {
	if m.dead.Load() {
		return "", errDead
	}
	return m.LeaseStore.Replace(ctx, record)
}

// The procedure of Changing shards keeps the order of each key and repeats nothing, also after a relay was
// killed and while events are written. Without it the new list is refused.
func TestChangedShardsKeepTheOrder(t *testing.T) {
	t.Parallel()
	w := newShardWorld(t)
	writer := w.write(t)
	_, _, kill := w.start(t, 2)
	w.eventually(t, "load", func() bool { return len(w.run.Messages) > 300 })
	kill()
	w.mu.Lock()
	before := len(w.run.Events)
	w.mu.Unlock()

	store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
	must(t, err)
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_SERVICEBUS_NAMESPACE=a.example", "FEEDBOX_SERVICEBUS_SHARDS=s0,s1,s2@second",
	})
	must(t, err)
	o := operator.New(cfg, operator.Store{Store: store}, nil)
	if relay, _, _ := w.start(t, 3); relay != nil {
		t.Fatal("a relay with other shards starts")
	}
	if _, err := o.Adopt(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Fatalf("the shards are adopted after a relay was killed: %v", err)
	}
	_, stop, _ := w.start(t, 2)
	w.eventually(t, "event from after the kill of each key", func() bool {
		arrived := map[string]int64{}
		for _, m := range w.run.Messages {
			arrived[m.Session] = max(arrived[m.Session], m.Sequence)
		}
		for _, e := range w.run.Events[:before] {
			if arrived[e.Key] < e.Sequence {
				return false
			}
		}
		return true
	})
	stop()
	w.eventually(t, "empty subscription", func() bool {
		for _, topic := range []string{"s0", "s1"} {
			if left, err := w.dev.Peek(topic+"/subscriptions/all", 1); err != nil || len(left) > 0 {
				return false
			}
		}
		return true
	})
	_, err = o.Adopt(t.Context())
	must(t, err)
	if relay, _, _ := w.start(t, 2); relay != nil {
		t.Fatal("a relay with the shards from before the change starts")
	}
	w.mu.Lock()
	received := len(w.run.Messages)
	w.mu.Unlock()
	_, stop, _ = w.start(t, 3)
	w.eventually(t, "load of the new shards", func() bool { return len(w.run.Messages) > received+300 })
	writer()
	w.eventually(t, "arrival of all events", func() bool { return len(w.run.Messages) >= len(w.run.Events) })
	stop()

	w.mu.Lock()
	defer w.mu.Unlock()
	w.run.Acked = map[string]int{}
	moved := 0
	for key, n := range w.next {
		w.run.Acked[key] = int(n)
		w.run.Aggregates = append(w.run.Aggregates, verify.Aggregate{ID: key, Version: n, Sequence: n})
		if len(w.at[key]) > 2 {
			moved++
		}
	}
	for _, broken := range w.run.Verify() {
		t.Error(broken)
	}
	if moved == 0 || moved == len(w.next) {
		t.Errorf("%d of %d keys moved to another topic: %v", moved, len(w.next), w.at)
	}
}
