//go:build faults

package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testkit"
)

// window is the minimum duplicate window of the service.
const window = 20 * time.Second

// shortWindow is a Config.json with the topic of the service and that window.
const shortWindow = `{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Topics":[{"Name":"contacts",
"Properties":{"RequiresDuplicateDetection":true,"DuplicateDetectionHistoryTimeWindow":"PT20S"},
"Subscriptions":[{"Name":"all","Properties":{"RequiresSession":true}}]}]}]}}`

// F10: the zombie publisher. Sends of a relay are held back on the network while the relay is suspended,
// and reach the broker after its duplicate window: after newer events, and as second copies. No lease
// and no fence can prevent that. The inbox of the consumer kit drops them.
func TestLateSendsAreDroppedByTheInbox(t *testing.T) {
	const full, atOnce = 20, 4
	seed := testkit.Seed(t, 11)
	total := testkit.Count(t, full)
	worlds := min(atOnce, total)
	result := testkit.Result{
		Fault: "F10", Name: "sends held back until the duplicate window is over", Seed: seed, Of: full,
		Note: "the duplicates seen are those that the consumer kit's inbox dropped; handlers got none",
	}
	var mu sync.Mutex // guards result
	t.Run("worlds", func(t *testing.T) {
		for n := range worlds {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				one := zombie(t, seed+uint64(n), total/worlds)
				mu.Lock()
				defer mu.Unlock()
				result.Injections += one.Injections
				result.Events += one.Events
				result.DuplicatesSent += one.DuplicatesSent
				result.DuplicatesSeen += one.DuplicatesSeen
				result.OrderViolations += one.OrderViolations
				result.Lost += one.Lost
				result.Recovery = max(result.Recovery, one.Recovery)
			})
		}
	})
	if result.DuplicatesSeen == 0 {
		t.Error("no send arrived late: the test proves nothing")
	}
	testkit.Record(t, result)
}

func zombie(t *testing.T, seed uint64, cycles int) testkit.Result {
	config := filepath.Join(t.TempDir(), "Config.json")
	if err := os.WriteFile(config, []byte(shortWindow), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, plan{seed: seed, relays: 1, contacts: 40, rate: 60, emulator: []string{"--ephemeral", "--config", config}})
	w.consumer.Stop() // the kit receives all further messages, and starts with the received ones
	network, behind := w.e.Through(t)
	kit := startKit(t, w)
	victim := w.addRelayAt(behind)
	for range cycles {
		w.balanced()
		time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		network.ServiceBus.Set(testkit.Way{Hold: true}, testkit.Way{})
		time.Sleep(1500 * time.Millisecond) // events are sent and held back
		ranges := w.owned(victim)
		w.signal(victim, syscall.SIGSTOP)
		kit.awaitHandled(t, w, ranges)
		time.Sleep(window + time.Second) // until the copies of the successor are outside the window
		network.Heal()
		time.Sleep(500 * time.Millisecond)
		w.signal(victim, syscall.SIGCONT)
	}
	w.stop()
	w.history.Add(w.load)
	began := time.Now()
	run := w.history.Run()
	run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, w.e.ContainerClient(t, w.e.Container))
	for deadline := began.Add(time.Minute); kit.count() < len(run.Events) && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	r := testkit.Result{Injections: int64(cycles), Events: int64(len(run.Events)), Recovery: time.Since(began).Seconds()}
	time.Sleep(300 * time.Millisecond)
	r.DuplicatesSent = w.e.DuplicatesDropped(t)
	kit.stop()
	if kit.failed != nil {
		t.Errorf("the consumer kit: %v", kit.failed)
	}
	run.Messages = kit.handled
	testkit.Judge(t, &run, &r)
	r.DuplicatesSeen += kit.dropped
	t.Logf("%d events arrived late and were dropped", kit.dropped)
	w.drain()
	return r
}

// kit is a consumer built with the consumer kit.
type kit struct {
	mu      sync.Mutex // guards the fields below
	handled []verify.Message
	dropped int64

	cancel context.CancelFunc
	done   chan error
	once   sync.Once
	failed error // of the kit, valid after stop
}

// startKit continues where the world's consumer has stopped.
func startKit(t *testing.T, w *world) *kit {
	t.Helper()
	k := &kit{done: make(chan error, 1), handled: w.consumer.Messages()}
	inbox := consumer.NewMemoryInbox(0)
	for _, m := range k.handled {
		if err := inbox.Record(t.Context(), m.Session, consumer.Mark{Sequence: m.Sequence, AggregateVersion: m.Version, EventID: m.ID}); err != nil {
			t.Fatal(err)
		}
	}
	namespace := servicebus.ClientConfig{ConnectionString: w.e.ServiceBusConnectionString}
	s, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(w.e.Topic, w.e.Subscription), k.handle, &subscriber.SessionOptions{
		Sessions: 16, Inbox: inbox, Observe: k.observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	go func() { k.done <- s.Run(ctx) }()
	t.Cleanup(k.stop)
	return k
}

func (k *kit) handle(_ context.Context, e *consumer.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handled = append(k.handled, verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence})
	return nil
}

func (k *kit) observe(_ context.Context, o consumer.Outcome) {
	if o.Action != consumer.Dropped {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropped++
}

func (k *kit) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.handled)
}

// awaitHandled waits until an event of each of the ranges is handled.
func (k *kit) awaitHandled(t *testing.T, w *world, ranges []feedRange) {
	t.Helper()
	from := k.count()
	testkit.Eventually(t, time.Minute, "events of the victim's ranges", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, r := range ranges {
			found := false
			for _, m := range k.handled[from:] {
				found = found || w.keys[r][m.Session]
			}
			if !found {
				return false
			}
		}
		return true
	})
}

func (k *kit) stop() {
	k.once.Do(func() {
		k.cancel()
		if err := <-k.done; err != nil {
			k.failed = err
		}
	})
}
