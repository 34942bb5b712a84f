package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/spec/steps"
)

// Names of the things in a world.
const (
	Database     = "contacts"
	Data         = "data"
	Leases       = "leases"
	Parked       = "parked"
	Topic        = "contacts"
	Subscription = "all"     // for the consumers
	Archive      = "archive" // without a consumer: keeps all accepted messages

	PartCosmos = "cosmos"
	PartBus    = "bus"

	cosmosAddr = "cosmos:8081"
	busAddr    = "bus:5672"
)

// World is one simulated system.
type World struct {
	t        testing.TB
	topology Topology
	outboxes []outbox
	seed     uint64
	id       int64
	network  *network
	metadata *metadata
	ctx      context.Context //nolint:containedctx // for the world's own goroutines, ended by Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	trace    *Trace
	cosmos   cosmosPart
	bus      busPart
	parts    map[string]*process
	received received
	ledger   ledger
	loads    []*Load
	shops    shops
	ports    atomic.Int64 // for the store's addresses, see endpoint
	closed   bool
	paused   atomic.Bool           // an operator's pause may be in effect
	steps    map[string]*steps.Log // by container of leases, see WriteSteps

	mu     sync.Mutex // guards the fields below
	faults []string   // violations seen during the run, and failures of the harness
	poison map[string]bool
	skips  map[string]bool // events that an operator asked the consumers to skip
}

// worlds numbers the worlds of this process, so that their host names differ.
var worlds atomic.Int64

var prepared sync.Once

// Bubble runs f in a synctest bubble for worlds. It must be called outside of any bubble.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	prepared.Do(func() {
		// os/signal starts a goroutine on its first use by fx. That must not happen in a
		// bubble, because the goroutine never ends.
		c := make(chan os.Signal, 1)
		signal.Notify(c, os.Interrupt)
		signal.Stop(c)
	})
	synctest.Test(t, f)
}

// New starts a world. It is closed when the test ends.
func New(t testing.TB, seed uint64, topology Topology) *World {
	t.Helper()
	w := &World{
		t: t, topology: topology.withDefaults(), seed: seed, id: worlds.Add(1), network: newNetwork(),
		trace: newTrace(), parts: map[string]*process{}, poison: map[string]bool{}, skips: map[string]bool{},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.outboxes, w.steps = outboxesOf(w.topology), map[string]*steps.Log{}
	for _, o := range w.outboxes {
		w.steps[o.leases] = steps.New()
	}
	w.metadata = newMetadata(w.network)
	t.Cleanup(w.Close)
	w.received.init(w.Random(3))
	w.ledger.events = map[string]verify.Event{}
	if err := w.cosmos.init(w); err != nil {
		t.Fatalf("world: %v", err)
	}
	if err := w.bus.init(w); err != nil {
		t.Fatalf("world: %v", err)
	}
	w.shops.acked, w.shops.unknown = map[string]int{}, map[string]int{}
	kinds := map[string]int{"api": w.topology.APIs, "relay": w.topology.Relays, "consumer": w.topology.Consumers, "shop": w.topology.Shops}
	if w.topology.OrdersApart && !w.topology.OneRelay {
		kinds["shoprelay"] = 2
	}
	for kind, n := range kinds {
		for i := range n {
			name := fmt.Sprintf("%s-%d", kind, i)
			w.parts[name] = &process{w: w, name: name, kind: kind}
		}
	}
	if w.topology.expires() {
		w.wg.Go(w.keepLedger)
	}
	if !w.topology.Manual {
		w.StartAll()
	}
	return w
}

// Close ends the world. It ends the faults first, so that processes can drain.
func (w *World) Close() {
	if w.closed {
		return
	}
	w.closed = true
	w.shops.close()
	for _, l := range w.loads {
		l.Stop()
	}
	w.Heal()
	for _, name := range w.Processes() {
		w.parts[name].stop()
	}
	w.cancel()
	w.wg.Wait()
	w.bus.close()
	w.cosmos.close()
	w.Sleep(refreshers)
}

// refreshers is longer than the lifetime of a token of the Service Bus client. If two goroutines
// find a link without a connection, both create one, and the client loses track of one pair of
// token refreshers (azservicebus internal/amqpLinks.go, Get). These end when they next wake up,
// because their client is closed by then.
const refreshers = 3 * time.Hour

// Topology returns the topology of the world with defaults.
func (w *World) Topology() Topology { return w.topology }

// Random returns a random source derived from the world's seed and a stream number. Streams below
// 100 are reserved for the world.
func (w *World) Random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, stream)) }

// Cosmos returns the running Cosmos DB emulator. It is a new one after a crash. It is safe for
// concurrent use.
func (w *World) Cosmos() *cosmosemu.Server { return w.cosmos.server() }

// Bus returns the running Service Bus emulator. It is a new one after a crash. It is safe for
// concurrent use.
func (w *World) Bus() *busemu.Server { return w.bus.server() }

// Sleep lets virtual time pass.
func (w *World) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// Eventually waits in virtual time until done returns true, at most limit, and reports whether it
// did. It checks less and less often, down to every ten seconds.
func (w *World) Eventually(limit time.Duration, done func() bool) bool {
	pause := 250 * time.Millisecond
	for end := time.Now().Add(limit); !done(); {
		if !time.Now().Before(end) {
			return false
		}
		w.Sleep(pause)
		pause = min(pause+pause/4, 10*time.Second)
	}
	return true
}

// harness records a failure of the harness itself, which makes the run inconclusive.
func (w *World) harness(format string, args ...any) { w.violation("harness: "+format, args...) }

// violation records a violation seen during the run. The first twenty are kept.
func (w *World) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) < 20 {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// WriteSteps writes the recorded steps of the relays if a folder for recordings is set (package steps).
func (w *World) WriteSteps() {
	for leases, log := range w.steps {
		if err := log.Write(fmt.Sprintf("%s-%d", leases, w.seed)); err != nil {
			w.t.Errorf("write the recording of %s: %v", leases, err)
		}
	}
}

// Trace returns the history of the world so far.
func (w *World) Trace() *Trace { return w.trace }
