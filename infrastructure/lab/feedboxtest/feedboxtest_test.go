package feedboxtest_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/feedboxtest"
)

// A committed event passes the relay and arrives. A test is a function like this one.
func orderIsPlaced(t feedboxtest.TB) {
	s := feedboxtest.Start(t, nil)
	_, err := s.Outbox().Batch("order-7").Put(map[string]any{"id": "order-7", "total": 5}, "").
		Emit("OrderPlaced", map[string]int{"total": 5}).Commit(t.Context())
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, e := range s.Received(1) {
		fmt.Println("received", e.Action, "of", e.Key)
	}
}

func ExampleStart() {
	run(orderIsPlaced) // go test calls the function with its *testing.T
	// Output: received OrderPlaced of order-7
}

// tb is a test that a program runs.
type tb struct {
	ctx      func() context.Context
	cleanups []func()
	failed   []string
}

func (t *tb) Helper()                   {}
func (t *tb) Context() context.Context  { return t.ctx() }
func (t *tb) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *tb) Errorf(f string, a ...any) { t.failed = append(t.failed, fmt.Sprintf(f, a...)) }
func (t *tb) Fatalf(f string, a ...any) {
	t.Errorf(f, a...)
	runtime.Goexit()
}

// run runs a test and returns its failures.
func run(test func(feedboxtest.TB)) []string {
	t := &tb{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithCancel(context.Background())
		t.ctx = func() context.Context { return ctx }
		defer func() {
			cancel()
			for i := len(t.cleanups) - 1; i >= 0; i-- {
				t.cleanups[i]()
			}
		}()
		test(t)
	}()
	<-done
	return t.failed
}

// The whole system runs in a bubble, so a test of an outage takes no time. All goroutines end with
// the test, otherwise the bubble does not.
func TestSystemRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer // read when the relay has ended, because cleanups run in reverse
		t.Cleanup(func() {
			if !strings.Contains(logged.String(), "lease acquired") {
				t.Errorf("the relay logs %q", logged.String())
			}
		})
		s := feedboxtest.Start(t, &feedboxtest.Options{
			Database: "db", Topic: "orders", Containers: []string{"totals"}, Subscriptions: []string{"billing"},
			Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		var away atomic.Bool
		s.Store.Control(cosmosemu.OpReadChangeFeed, func(*cosmosemu.Call) *cosmosemu.Fault {
			if away.Load() {
				return &cosmosemu.Fault{Status: http.StatusServiceUnavailable}
			}
			return nil
		})
		outbox := s.Outbox()
		for n := range 3 {
			away.Store(n == 1)
			for _, key := range []string{"a", "b"} {
				if _, err := outbox.Batch(key).Emit(fmt.Sprint("E", n), nil).Emit(fmt.Sprint("F", n), nil).Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
		}
		var of [2]string
		for _, e := range s.Received(12) {
			of[strings.Index("ab", e.Key)] += e.Action + " "
		}
		if want := "E0 F0 E1 F1 E2 F2 "; of[0] != want || of[1] != want {
			t.Errorf("received %q, want each key in order", of)
		}
		if _, err := s.Container("totals").Read(t.Context(), nil); err != nil {
			t.Error(err)
		}
		handled := make(chan string, 12)
		billing, err := feedbox.NewConsumer(s.ServiceBus, "orders", "billing", func(_ context.Context, e *feedbox.Event) error {
			handled <- e.Action
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- billing.Run(ctx) }()
		s.WaitFor("billing has handled all events", func() bool { return len(handled) == 12 })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The failure of a test names what arrived, and a relay that ends fails the test.
func TestMissingEventsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := run(func(t feedboxtest.TB) {
			s := feedboxtest.Start(t, nil)
			if _, err := s.Outbox().Batch("k").Emit("Placed", nil).Commit(t.Context()); err != nil {
				t.Fatalf("%v", err)
			}
			s.Received(2)
		})
		if len(failed) != 1 || !strings.Contains(failed[0], "1 of 2 events arrived within 1m0s: Placed of k; relay: ready") {
			t.Errorf("%q", failed)
		}
		failed = run(func(t feedboxtest.TB) {
			feedboxtest.Start(t, nil).WaitFor("rain", func() bool { return false })
		})
		if len(failed) != 1 || !strings.Contains(failed[0], "not after 1m0s: rain") {
			t.Errorf("%q", failed)
		}
	})
}

// A query works in the test if the deployed policy serves it, and only then.
func TestQueriesAreCheckedAgainstTheGivenPolicy(t *testing.T) {
	s := feedboxtest.Start(t, &feedboxtest.Options{
		Containers: []string{"totals"}, NoRelay: true,
		IndexingPolicies: map[string]string{"totals": `{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]}`},
	})
	for name, want := range map[string]bool{"totals": true, "data": false} {
		c, err := s.Cosmos.NewContainer("shop", name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.NewQueryItemsPager("SELECT * FROM c ORDER BY c.a, c.b", azcosmos.NewPartitionKeyString("k"), nil).NextPage(t.Context())
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Other processes reach the emulators over the loopback interface. The service runs a relay of its own.
func TestLoopbackWithoutRelay(t *testing.T) {
	s := feedboxtest.Start(t, &feedboxtest.Options{Loopback: true, NoRelay: true})
	client, err := feedbox.NewCosmosClient(feedbox.CosmosConfig{Endpoint: s.Store.Endpoint(), Key: s.Store.Key()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	bus, err := feedbox.NewServiceBusClient(feedbox.ServiceBusConfig{ConnectionString: s.Broker.ConnectionString()})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := feedbox.NewRelay(client, &feedbox.Containers{Database: "shop"}, bus, &feedbox.Topics{Topic: "events"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := bus.Close(t.Context()); err != nil {
		t.Error(err)
	}
	failed := run(func(t feedboxtest.TB) { feedboxtest.Start(t, &feedboxtest.Options{NoRelay: true}).Received(1) })
	if len(failed) != 1 || !strings.Contains(failed[0], "NoRelay is set") {
		t.Errorf("%q", failed)
	}
}
