package pairs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/servers"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// world is the service on one pair: processes of API and relay, and consumers.
type world struct {
	store    *store
	broker   *broker
	binaries testkit.Binaries
	env      []string // of all processes
	api      string   // base URL
	apis     *testkit.Process
	relays   []*testkit.Process
	started  int // relays so far
	ledger   servers.Ledger
}

// eachPair runs a test on each pair. Without the tag faults it runs only three pairs, which have each
// store and each of the first three brokers, because ten pairs take a minute of two processors. A
// sample has Cosmos DB in place of Firestore, because Google's emulator needs ten seconds of processor
// time.
func eachPair(t *testing.T, test func(t *testing.T, s storeKind, b brokerKind)) {
	t.Helper()
	for i, s := range stores {
		for j, b := range brokers {
			if b.store != "" && b.store != s.name {
				continue
			}
			chosen := i == j
			if !testenv.Full(t) && b.name == "sqs" {
				chosen = s.name == "cosmos"
			}
			if !everyPair && !chosen {
				continue
			}
			t.Run(s.name+"-"+b.name, func(t *testing.T) { test(t, s, b) })
		}
	}
}

// newWorld starts an API and a consumer. A test starts more processes as it needs them.
func newWorld(t *testing.T, s *store, b *broker) *world {
	t.Helper()
	return (&world{store: s, broker: b, binaries: testkit.Build(t), env: []string{"FEEDBOX_PARKED_POLL=500ms"}}).start(t)
}

func (w *world) start(t *testing.T) *world {
	t.Helper()
	w.env = slices.Concat(w.env, []string{
		"FEEDBOX_LEASE_EXPIRY=2s", "FEEDBOX_RELAY_POLL_MAX=50ms", "FEEDBOX_API_DRAIN_DELAY=0s", "FEEDBOX_AUDIT=true",
		fmt.Sprint("FEEDBOX_API_LISTEN=127.0.0.1:", servers.Ports(t, 1)[0]),
	}, w.store.env, w.broker.env)
	w.apis, w.api = testkit.StartAPIWith(t, w.binaries, w.env)
	w.broker.consume(t, &w.ledger)
	return w
}

// owning waits until a relay owns a range. One whose store or broker does not answer at its start ends, as it
// should: something else would start it again.
func owning(t *testing.T, relay *testkit.Process) {
	t.Helper()
	testkit.Eventually(t, time.Minute, relay.Name+" owns a range", func() bool {
		if relay.Ended() {
			t.Fatalf("%s has ended: %s", relay.Name, relay.Output())
		}
		return strings.Contains(relay.Output(), "lease acquired")
	})
}

// relay starts a relay.
func (w *world) relay(t *testing.T) *testkit.Process {
	t.Helper()
	w.started++
	name := fmt.Sprintf("relay-%d", w.started)
	return testkit.Start(t, name, w.binaries.Feedbox, append(slices.Clone(w.env), "FEEDBOX_INSTANCE="+name), "relay")
}

// load changes contacts until it is stopped.
func (w *world) load(t *testing.T, seed uint64) *testkit.Workload {
	t.Helper()
	return &testkit.Workload{
		Base: w.api, Client: testkit.HTTPClient(t, 8), Contacts: 40, Changes: 1_000_000, Writers: 8, Seed: int64(seed), Rate: cmp.Or(w.store.rate, 60),
	}
}

// feedbox runs a command of the program, which must succeed, and decodes its output.
func (w *world) feedbox(t *testing.T, into any, verb ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.binaries.Feedbox, append(verb, "-o", "json")...)
	cmd.Env = testkit.Environ(w.env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("feedbox %s: %v\n%s%s", strings.Join(verb, " "), err, out, said.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("feedbox %s: %v in %s", strings.Join(verb, " "), err, out)
	}
}

// judge waits until a consumer with an inbox has received all stored events, and verifies the run.
func (w *world) judge(t *testing.T, history *testkit.History) {
	t.Helper()
	run := verify.Run{}
	if history != nil {
		run = history.Run()
	}
	run.Aggregates, run.Events = w.store.read(t)
	// The limit counts from the last arrival, because the total time depends on the number of events.
	moved, seen := time.Now(), 0
	for seen < len(run.Events) {
		if now := w.ledger.Count(); now > seen {
			moved, seen = time.Now(), now
		} else if time.Since(moved) > 2*time.Minute {
			t.Errorf("%d of %d events, and no more for two minutes", seen, len(run.Events))
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	run.Messages, run.Repeats = w.ledger.Messages()
	t.Logf("%s; %d repeats kept away by the inbox", run.Summary(), run.Repeats)
	for _, breach := range run.Verify() {
		t.Error(breach)
	}
}
