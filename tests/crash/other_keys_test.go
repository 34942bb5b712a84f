//go:build faults

package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/tests/testkit"
)

// BenchmarkOtherKeys measures how long events of 180 keys take while the first event of each of 20 others is
// refused, so that a tenth of all events is parked. Rounds with and without refused events alternate:
// go test -tags faults -run ^$ -bench OtherKeys -benchtime 5x ./tests/crash. The time of an event begins when it
// is due to be published, and ends when the kit reports its outcome.
func BenchmarkOtherKeys(b *testing.B) {
	for _, bench := range []struct {
		broker string
		rate   int // events a second
	}{{"servicebus", 500}, {"rabbitmq", 500}, {"sqs", 100}} {
		b.Run(bench.broker, func(b *testing.B) {
			plan := &consumerPlan{Broker: bench.broker}
			_, plan.Endpoints = testkit.StartDev(b, testkit.Build(b), testkit.EmulatorPorts("--ephemeral")...)
			o := &otherKeys{publisher: plan.startBroker(b), rate: bench.rate}
			o.consume(b, plan)
			o.round(b, "warm") // connections, sessions and queues are opened
			percentiles := map[string]int{"p50": 50, "p99": 99}
			calm, beside := map[string][]time.Duration{}, map[string][]time.Duration{}
			for n := 0; b.Loop(); n++ {
				was, is := o.round(b, fmt.Sprint("calm-", n)), o.round(b, fmt.Sprint(refusing, n))
				for name, p := range percentiles {
					calm[name], beside[name] = append(calm[name], was[len(was)*p/100]), append(beside[name], is[len(is)*p/100])
				}
			}
			for name := range percentiles {
				slices.Sort(calm[name])
				slices.Sort(beside[name])
				b.Logf("%s of each round: %s; with refused events %s", name, calm[name], beside[name])
				was, is := calm[name][len(calm[name])/2], beside[name][len(beside[name])/2]
				b.ReportMetric(was.Seconds()*1000, name+"-ms")
				b.ReportMetric(is.Seconds()*1000, name+"-ms-beside")
			}
			b.ReportMetric(0, "ns/op") // the rate decides it
		})
	}
}

const (
	refusing   = "refusing-"
	roundKeys  = 200
	roundTime  = 20 * time.Second
	refusedKey = 10 // the first event of every tenth key is refused
)

type otherKeys struct {
	publisher relay.Publisher
	rate      int

	mu      sync.Mutex
	due     map[string]time.Time // of events of other keys that are not handled
	handled []time.Duration
}

func isOther(key int) bool { return key%refusedKey != 0 }

// consume starts a consumer until the end of the benchmark.
func (o *otherKeys) consume(b *testing.B, plan *consumerPlan) {
	b.Helper()
	inbox, err := cosmosinbox.New(plan.Endpoints.ContainerClient(b, plan.Endpoints.Container), "mail", nil)
	if err != nil {
		b.Fatal(err)
	}
	handler := func(_ context.Context, e *consumer.Event) error {
		var key int
		if _, err := fmt.Sscanf(e.Key[strings.LastIndexByte(e.Key, '.')+1:], "%d", &key); err != nil {
			return err
		}
		if strings.HasPrefix(e.Key, refusing) && !isOther(key) && e.Sequence == 1 {
			return consumer.DeadLetter("poison", errors.New("never handled"))
		}
		return nil
	}
	kit, err := plan.kit(handler, consumer.Options{Concurrency: 100, Inbox: inbox, Park: plan.parked(b), Observe: func(_ context.Context, out consumer.Outcome) {
		o.observe(out.Event.ID)
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- kit.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

func (o *otherKeys) observe(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if due, ok := o.due[id]; ok {
		o.handled = append(o.handled, time.Since(due))
		delete(o.due, id)
	}
}

// round publishes events at the rate and returns the times of those of other keys, ascending.
func (o *otherKeys) round(b *testing.B, name string) []time.Duration {
	b.Helper()
	o.mu.Lock()
	o.due, o.handled = map[string]time.Time{}, nil
	o.mu.Unlock()
	const perPage = 5
	pause, began := perPage*time.Second/time.Duration(o.rate), time.Now()
	for n := 0; n < o.rate*int(roundTime/time.Second); {
		due := began.Add(pause * time.Duration(n/perPage))
		time.Sleep(time.Until(due))
		var groups []relay.Group
		for range perPage {
			key, sequence := n%roundKeys, int64(n/roundKeys+1)
			g := relay.Group{Key: fmt.Sprintf("%s.%d", name, key)}
			m := relay.Message{ID: eventID(g.Key, sequence), Key: g.Key, Action: "Changed", Body: []byte(`{}`), Sequence: sequence, AggregateVersion: sequence}
			if isOther(key) {
				o.mu.Lock()
				o.due[m.ID] = due
				o.mu.Unlock()
			}
			g.Messages = []relay.Message{m}
			groups = append(groups, g)
			n++
		}
		if err := o.publisher.Publish(b.Context(), groups); err != nil {
			b.Fatal(err)
		}
	}
	testkit.Eventually(b, time.Minute, "the events of other keys", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.due) == 0
	})
	slices.Sort(o.handled)
	return o.handled
}
