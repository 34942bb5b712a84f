//go:build faults

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/tests/spec/steps"
	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type feedRange = changefeed.FeedRange

// patience bounds waits for a condition. It is long because the machine may be busy.
const patience = time.Minute

// world is one whole system of real processes under load.
type world struct {
	t        *testing.T
	rnd      *rand.Rand
	binaries testkit.Binaries
	dev      *testkit.Process
	e        testkit.Endpoints
	base     string // URL of the API
	leases   *testkit.Leases
	consumer *testkit.Consumer

	relays  []*testkit.Process
	started int      // relays so far
	env     []string // of every relay
	keys    map[feedRange]map[string]bool
	history testkit.History
	refused map[string]bool // ids of events that cannot be sent, and of the later ones of their keys
	load    *testkit.Workload
	stop    func()      // ends the load
	steps   *steps.Wire // requests of the relays to their leases; nil unless they are recorded
}

// plan describes a world.
type plan struct {
	seed     uint64
	tags     []string // of the binaries
	emulator []string // flags of feedbox-dev emulators, default --ephemeral
	relays   int
	env      []string // of every relay, besides the fast leases
	contacts int
	rate     float64
	writers  int
	sessions int // of the consumer
}

// start starts a world and returns once the contacts are created and every range has an owner.
func start(t *testing.T, p plan) *world {
	t.Helper()
	if p.emulator == nil {
		p.emulator = []string{"--ephemeral"}
	}
	w := &world{t: t, rnd: rand.New(rand.NewPCG(p.seed, 0)), binaries: testkit.Build(t, p.tags...), env: p.env}
	w.dev, w.e = testkit.StartDev(t, w.binaries, testkit.EmulatorPorts(p.emulator...)...)
	w.record(p.seed)
	_, w.base = testkit.StartAPI(t, w.binaries, w.e)
	w.leases = w.e.OpenLeases(t, "")
	for range p.relays {
		w.addRelay()
	}
	w.consumer = w.e.StartConsumer(t, max(p.sessions, 8))
	w.begin(p)
	if p.relays > 0 {
		w.settled()
	}
	w.mapKeys()
	return w
}

// record records the requests of the relays to their leases, if a folder for recordings is set.
func (w *world) record(seed uint64) {
	w.t.Helper()
	w.steps = steps.NewWire(w.e.Database, w.e.Leases)
	w.t.Cleanup(func() {
		name := fmt.Sprintf("crash-%s-%d", strings.ReplaceAll(w.t.Name(), "/", "_"), seed)
		if err := w.steps.Write(name); err != nil {
			w.t.Errorf("write the recording: %v", err)
		}
	})
}

// begin starts the load and waits until its contacts are created.
func (w *world) begin(p plan) {
	w.t.Helper()
	writers := max(p.writers, 8)
	w.load = &testkit.Workload{
		Base: w.base, Client: testkit.HTTPClient(w.t, writers),
		Contacts: p.contacts, Changes: 50_000_000, Writers: writers, Seed: int64(p.seed), Rate: p.rate,
	}
	w.stop = testkit.Background(w.t, w.load)
	testkit.Eventually(w.t, patience, "the contacts", func() bool { return w.load.Done() >= p.contacts })
}

// addRelay starts another relay.
func (w *world) addRelay(env ...string) *testkit.Process {
	w.t.Helper()
	return w.addRelayAt(w.e, env...)
}

// addRelayAt starts another relay that connects to the emulators at e.
func (w *world) addRelayAt(e testkit.Endpoints, env ...string) *testkit.Process {
	w.t.Helper()
	w.started++
	name := fmt.Sprintf("relay-%d", w.started)
	through, stop, err := w.steps.Host(name, e.CosmosEndpoint)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
	e.CosmosEndpoint = through
	r := testkit.StartRelay(w.t, w.binaries, e, name, append(slices.Clone(w.env), env...)...)
	w.relays = append(w.relays, r)
	return r
}

// forget drops a relay that has ended.
func (w *world) forget(r *testkit.Process) {
	w.relays = slices.DeleteFunc(w.relays, func(p *testkit.Process) bool { return p == r })
}

// settled waits until a running relay owns every range.
func (w *world) settled() {
	w.t.Helper()
	testkit.Eventually(w.t, patience, "an owner for each range", func() bool {
		owners := w.leases.Owners(w.t.Context())
		for _, owner := range owners {
			if !slices.ContainsFunc(w.relays, func(p *testkit.Process) bool { return p.Name == owner && !p.Ended() }) {
				return false
			}
		}
		return len(owners) > 0
	})
}

// balanced waits until each relay owns its share of the ranges.
func (w *world) balanced() {
	w.t.Helper()
	testkit.Eventually(w.t, patience, "a share of the ranges for each relay", func() bool {
		shares, ranges := map[string]int{}, 0
		for _, owner := range w.leases.Owners(w.t.Context()) {
			shares[owner]++
			ranges++
		}
		return ranges > 0 && shares[""] == 0 && !slices.ContainsFunc(w.relays, func(r *testkit.Process) bool {
			return shares[r.Name] < max(1, ranges/len(w.relays))
		})
	})
}

// owned returns the ranges that a relay owns.
func (w *world) owned(r *testkit.Process) []feedRange {
	var ranges []feedRange
	for at, owner := range w.leases.Owners(w.t.Context()) {
		if owner == r.Name {
			ranges = append(ranges, at)
		}
	}
	return ranges
}

// quantile returns a quantile of sorted durations in seconds, the lower one of two; 0 if there are none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Seconds()
}

// finish stops the load, waits until all events have arrived and verifies the run. It fills in the
// result and returns the time until the last event arrived.
func (w *world) finish(r *testkit.Result) time.Duration {
	w.t.Helper()
	w.stop()
	w.history.Add(w.load)
	began := time.Now()
	run := w.history.Run()
	run.Aggregates, run.Events = testkit.ReadStore(w.t.Context(), w.t, w.e.ContainerClient(w.t, w.e.Container))
	w.t.Logf("%d events are stored", len(run.Events))
	limit := time.Minute + time.Duration(len(run.Events))*5*time.Millisecond
	for deadline := began.Add(limit); w.consumer.Count() < len(run.Events)-len(w.refused) && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) // the verifier reports missing events
	}
	rest := time.Since(began)
	time.Sleep(300 * time.Millisecond) // unexpected messages would arrive now
	w.consumer.Stop()
	run.Messages = w.consumer.Messages()
	if w.refused != nil {
		run.Poison, run.Parked = w.refused, w.parked()
	}
	r.Events, r.DuplicatesSent = int64(len(run.Events)), w.e.DuplicatesDropped(w.t)
	testkit.Judge(w.t, &run, r)
	return rest
}

// drain stops the remaining relays; each must exit with code 0.
func (w *world) drain() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for _, r := range w.relays {
		if code := r.Terminate(ctx); code != 0 {
			w.t.Errorf("SIGTERM of %s: exit code %d, want 0", r.Name, code)
		}
	}
}
