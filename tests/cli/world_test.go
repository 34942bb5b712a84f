package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/rogpeppe/go-internal/testscript"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	parkedlot "feedbox/infrastructure/store/cosmos/parked"
)

// Names in the emulators.
const database, data, leases, parked, topic, subscription = "contacts", "data", "leases", "parked", "contacts", "demo"

// world is the emulators and clients of one script.
type world struct {
	cosmos *cosmosemu.Server
	bus    *busemu.Server
	data   *azcosmos.ContainerClient
	lot    *parkedlot.Store
	leases *changefeed.Operator
	sent   map[string]int // events seeded, by key
}

type worldKey struct{}

// setup starts the emulators of one script.
func setup(env *testscript.Env, binary string) error {
	w, err := newWorld()
	if err != nil {
		return err
	}
	env.Defer(w.close)
	env.Values[worldKey{}] = w
	env.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+env.Getenv("PATH"))
	env.Setenv("USER", "alice")
	for name, value := range map[string]string{
		"COSMOS_ENDPOINT": w.cosmos.Endpoint(), "COSMOS_KEY": w.cosmos.Key(),
		"SERVICEBUS_CONNECTION_STRING": w.bus.ConnectionString(),
		"LEASE_EXPIRY":                 "5s", "RELAY_POLL_MAX": "50ms", "PARKED_POLL": "500ms",
	} {
		env.Setenv("FEEDBOX_"+name, value)
	}
	env.Setenv("ADMIN", w.bus.AdminURL())
	env.Setenv("TAKEN", w.bus.Addr())
	env.Setenv("CLOSED", "127.0.0.1:1")
	env.Setenv("LISTENER", w.bus.ConnectionStringFor("listener"))
	return nil
}

func newWorld() (*world, error) {
	w := &world{sent: make(map[string]int)}
	var err error
	if w.cosmos, err = cosmosemu.Start(&cosmosemu.Options{}); err != nil {
		return nil, err
	}
	if err := createContainers(w.cosmos); err != nil {
		return nil, err
	}
	if w.bus, err = busemu.Start(&busemu.Options{Keys: []busemu.SASKey{
		{Name: "root", Key: "cm9vdA==", Rights: busemu.RightManage | busemu.RightSend | busemu.RightListen},
		{Name: "listener", Key: "bGlzdGVu", Rights: busemu.RightListen},
	}}); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := w.bus.CreateTopic(ctx, busemu.Topic{Name: topic, RequiresDuplicateDetection: true, DuplicateDetectionWindow: 10 * time.Minute}); err != nil {
		return nil, err
	}
	if err := w.bus.CreateSubscription(ctx, topic, busemu.Subscription{Name: subscription, RequiresSession: true}); err != nil {
		return nil, err
	}
	client := w.cosmos.Client()
	if w.data, err = client.NewContainer(database, data); err != nil {
		return nil, err
	}
	lot, err := client.NewContainer(database, parked)
	if err != nil {
		return nil, err
	}
	if w.lot, err = parkedlot.NewStore(lot); err != nil {
		return nil, err
	}
	feed, err := cosmosfeed.NewFeed(client, database, data)
	if err != nil {
		return nil, err
	}
	store, err := cosmosfeed.NewLeaseStore(client, database, leases)
	w.leases = changefeed.NewOperator(feed, store, &changefeed.OperatorOptions{Processor: "feedbox"})
	return w, err
}

func createContainers(emulator *cosmosemu.Server) error {
	for _, c := range []cosmosemu.ContainerProps{
		{ID: data, PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, Partitions: 2},
		{ID: leases, PartitionKey: []string{"/id"}, Partitions: 1},
		{ID: parked, PartitionKey: []string{"/partitionKey"}, Partitions: 1},
	} {
		if err := emulator.CreateContainer(database, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) close() {
	_ = w.bus.Close()
	_ = w.cosmos.Close()
}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// eventID returns the id of event n of a key.
func eventID(key string, n int) string { return fmt.Sprintf("%s-event-%d", key, n) }

// eventDocument returns event n of a key as the API stores it.
func eventDocument(key string, n int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"contactId":%q,"action":"ContactNameUpdatedEvent","id":%q,"createdAt":"2026-01-31T08:00:00Z","aggregateVersion":%d,"sequence":%d,"schemaVersion":1},"ttl":864000}`,
		eventID(key, n), key, key, eventID(key, n), n, n)
}
