package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// Relays are killed with -9 and replaced during 2,000 changes of 200 contacts. A kill counts only if
// the victim had sent past its checkpoint, which shows in duplicates that the broker drops. A sample
// ends the changes after the first kill that counts.
func TestRelaysKilledAndReplaced(t *testing.T) {
	t.Parallel()
	const changes, contacts = 2000, 200
	wantKills := testenv.Sample(t, 1, 3)
	seed := testkit.Seed(t, 1)
	rnd := rand.New(rand.NewPCG(seed, 0))
	binaries := testkit.Build(t)
	_, e := testkit.StartDev(t, binaries, testkit.EmulatorPorts("--ephemeral")...)
	_, api := testkit.StartAPI(t, binaries, e)
	relays := []*testkit.Process{startRelay(t, binaries, e, 0), startRelay(t, binaries, e, 1)}
	started := len(relays)
	consumer := e.StartConsumer(t, 8)

	load := &testkit.Workload{
		Base: api, Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 10 * time.Second},
		Contacts: contacts, Changes: changes, Writers: 8, Seed: int64(seed), Pace: 60 * time.Millisecond,
	}
	loading, endLoad := context.WithCancel(t.Context())
	defer endLoad()
	done := make(chan error, 1)
	go func() { done <- load.Run(loading) }()

	kills, counted := 0, 0
	for counted < wantKills {
		if _, _, n := load.History(); n >= changes {
			break
		}
		time.Sleep(time.Duration(300+rnd.IntN(700)) * time.Millisecond)
		before := e.DuplicatesDropped(t)
		victim := rnd.IntN(len(relays))
		relays[victim].Kill()
		relays[victim] = startRelay(t, binaries, e, started)
		started++
		kills++
		deadline := time.Now().Add(6 * time.Second)
		for e.DuplicatesDropped(t) == before && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
		}
		if e.DuplicatesDropped(t) > before {
			counted++
		}
	}
	if !testenv.Full(t) {
		endLoad()
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if counted == 0 && e.DuplicatesDropped(t) == 0 { // on a busy machine the changes end before wantKills; tests/crash counts a hundred
		t.Errorf("none of %d kills hit a relay that had sent past its checkpoint", kills)
	}

	var run verify.Run
	run.Acked, run.Unknown, _ = load.History()
	run.LostCreates = load.LostCreates()
	run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, e.ContainerClient(t, e.Container))
	testkit.Eventually(t, time.Minute, fmt.Sprintf("all %d events", len(run.Events)), func() bool { return consumer.Count() >= len(run.Events) })
	time.Sleep(500 * time.Millisecond) // what should not come would come now
	consumer.Stop()
	run.Messages = consumer.Messages()
	t.Logf("%s; %d kills, %d counted; %d duplicates dropped by the broker", run.Summary(), kills, counted, e.DuplicatesDropped(t))
	for _, v := range run.Verify() {
		t.Error(v)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, r := range relays {
		if code := r.Terminate(ctx); code != 0 {
			t.Errorf("SIGTERM of a relay: exit code %d, want 0", code)
		}
	}
}

// startRelay runs `feedbox relay` with short timings.
func startRelay(t *testing.T, b testkit.Binaries, e testkit.Endpoints, n int) *testkit.Process {
	t.Helper()
	name := fmt.Sprintf("relay-%d", n)
	return testkit.Start(t, name, b.Feedbox, e.ServiceEnv(
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING="+e.ServiceBusConnectionString,
		"FEEDBOX_SERVICEBUS_TOPIC="+e.Topic,
		"FEEDBOX_INSTANCE="+name,
		"FEEDBOX_LEASE_EXPIRY=2s",
		"FEEDBOX_RELAY_POLL_MAX=100ms",
		"FEEDBOX_LOG_FORMAT=json",
	), "relay")
}
