package e2e

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/fx"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// The machine loses power and all data that was not fsynced. Kill -9 cannot test that, because the
// kernel keeps the writes of a dead process.
func TestPowerLossLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t, 1)
	rnd := rand.New(rand.NewPCG(seed, 0))
	cosmosDisk, busDisk := vfs.NewCrashableMem(), vfs.NewCrashableMem()
	acked, unknown, lost := map[string]int{}, map[string]int{}, 0
	for round := range testenv.Sample(t, 2, 5) {
		world := startWorld(t, cosmosDisk, busDisk)
		load := &testkit.Workload{
			Base: world.endpoints.API, Client: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second},
			Contacts: 20, Changes: 100_000, Writers: 8, Seed: int64(seed) + int64(round),
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- load.Run(ctx) }()
		testkit.Eventually(t, time.Minute, "the first changes", func() bool { _, _, n := load.History(); return n > 50 })
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)

		// The store's disk is copied first, because a surviving checkpoint must not cover
		// messages that are missing on the broker's disk.
		a, _, _ := load.History()
		cosmosDisk = cosmosDisk.CrashClone(vfs.CrashCloneCfg{})
		busDisk = busDisk.CrashClone(vfs.CrashCloneCfg{})
		cancel()
		if err := <-done; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		after, u, _ := load.History()
		lost += load.LostCreates()
		for id, n := range a {
			acked[id] += n
		}
		for id, n := range after { // acknowledged after the power loss, so perhaps lost
			unknown[id] += n - a[id] + u[id]
		}
		world.stop()
	}

	world := startWorld(t, cosmosDisk, busDisk)
	consumer := world.endpoints.StartConsumer(t, 8)
	run := verify.Run{Acked: acked, Unknown: unknown, LostCreates: lost}
	run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, world.endpoints.ContainerClient(t, "data"))
	testkit.Eventually(t, time.Minute, "every stored event", func() bool { return consumer.Count() >= len(run.Events) })
	consumer.Stop()
	run.Messages = consumer.Messages()
	t.Log(run.Summary())
	for _, v := range run.Verify() {
		t.Error(v)
	}
}

// world is both emulators on given disks and the service on them, in this process and over loopback
// sockets.
type world struct {
	endpoints testkit.Endpoints
	stop      func() // writes during the stop are lost, because the disks were copied before
}

func startWorld(t *testing.T, cosmosDisk, busDisk vfs.FS) *world {
	t.Helper()
	cosmos, err := cosmosemu.Start(&cosmosemu.Options{FS: cosmosDisk, DataDir: "data"})
	if err != nil {
		t.Fatal(err)
	}
	bus, err := busemu.Start(&busemu.Options{FS: busDisk, DataDir: "data"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []cosmosemu.ContainerProps{
		{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, Partitions: 4},
		{ID: "leases", PartitionKey: []string{"/id"}},
		{ID: "parked", PartitionKey: []string{"/partitionKey"}},
	} {
		if err := cosmos.CreateContainer("contacts", c); err != nil {
			t.Fatal(err)
		}
	}
	if err := bus.CreateTopic(t.Context(), busemu.Topic{Name: "contacts", RequiresDuplicateDetection: true}); err != nil {
		t.Fatal(err)
	}
	if err := bus.CreateSubscription(t.Context(), "contacts", busemu.Subscription{Name: "all", RequiresSession: true}); err != nil {
		t.Fatal(err)
	}
	w := &world{endpoints: testkit.Endpoints{
		CosmosEndpoint: cosmos.Endpoint(), CosmosKey: cosmos.Key(), ServiceBusConnectionString: bus.ConnectionString(),
		Database: "contacts", Container: "data", Leases: "leases", Parked: "parked", Topic: "contacts", Subscription: "all",
	}}
	environ := w.endpoints.ServiceEnv("FEEDBOX_LEASE_EXPIRY=1s", "FEEDBOX_RELAY_POLL_MAX=50ms", "FEEDBOX_SERVICEBUS_CONNECTION_STRING="+bus.ConnectionString())
	relayEnviron := environ
	apiConfig, err := config.LoadAPI(environ)
	if err != nil {
		t.Fatal(err)
	}
	relayConfig, err := config.LoadRelay(relayEnviron)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.endpoints.API = "http://" + listener.Addr().String()
	around := wiring.Params{Log: slog.New(slog.DiscardHandler)}
	inAPI := around
	inAPI.API = listener
	ctx, cancel := context.WithCancel(context.Background())
	stopRelay := runApp(ctx, t, fx.New(wiring.Relay(relayConfig, around)))
	stopAPI := runApp(ctx, t, fx.New(wiring.API(apiConfig, inAPI)))
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		stopAPI()
		stopRelay()
		_ = bus.Close()
		_ = cosmos.Close()
	}
	t.Cleanup(w.stop)
	return w
}

// runApp starts a part of the service and returns a function that waits for its end.
func runApp(ctx context.Context, t *testing.T, app *fx.App) (wait func()) {
	t.Helper()
	started, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- wiring.Run(ctx, app, func() { close(started) }) }()
	select {
	case <-started:
	case err := <-done:
		t.Fatal(err)
	}
	return func() {
		if err := <-done; err != nil {
			t.Logf("a part of the service: %v", err)
		}
	}
}
