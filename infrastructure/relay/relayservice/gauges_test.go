package relayservice_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/infrastructure/relay/monitor"
)

// gauges collects what a relay measures: the values of whole numbers, by name.
func gauges(t *testing.T, r metric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if g, ok := m.Data.(metricdata.Gauge[int64]); ok {
				for _, p := range g.DataPoints {
					found[m.Name] += p.Value
				}
			}
			if g, ok := m.Data.(metricdata.Sum[int64]); ok && !g.IsMonotonic {
				for _, p := range g.DataPoints {
					found[m.Name] += p.Value
					if container, ok := p.Attributes.Value("container"); ok {
						found[m.Name+" of "+container.AsString()] += p.Value
					}
				}
			}
		}
	}
	return found
}

// The gauges of a relay tell what is parked, and what waits. While the store fails the last
// known lag stays, whatever becomes of the leases; a broker that fails changes nothing of it.
func TestRelayRegistersGauges(t *testing.T) {
	for _, failing := range []string{"memory", "broker"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			reader := metric.NewManualReader()
			b.o.Meters = metric.NewMeterProvider(metric.WithReader(reader))
			b.o.Needs = monitor.NewDependencies(time.Now, "memory", "broker")
			events := []relay.ParkedEvent{{ID: "p1", Sequence: 1, LSN: 1}, {ID: "p2", Sequence: 2, LSN: 2}}
			if _, err := b.lot.Park(t.Context(), "parked", events, &relay.Closing{Event: "p1", At: time.Now()}); err != nil {
				t.Fatal(err)
			}
			b.publish = func(ctx context.Context, _ *relay.Group) error { <-ctx.Done(); return context.Cause(ctx) }
			b.put("k", "e1", 1)
			b.put("k", "e2", 2)
			stop := b.run()
			time.Sleep(time.Minute)
			got := gauges(t, reader)
			if got["outbox.parked.keys"] != 1 || got["outbox.parked.waiting"] != 2 || got["outbox.lag"] != 2 {
				t.Errorf("gauges %v, want one key with two events parked, and a lag of two", got)
			}
			b.o.Needs[failing].Note(errors.New("away"))
			if err := stop(); err != nil { // the relay owns nothing any more
				t.Error(err)
			}
			lag, there := gauges(t, reader)["outbox.lag"]
			if want := failing == "memory"; there != want || want && lag != 2 {
				t.Errorf("%s fails: lag %d, known %t", failing, lag, there)
			}
		})
	}
}

// The services of a process for several containers tell of each of them, although their ranges have the same
// names. The answers of one container do not hide that another does not answer.
func TestRelaysOfSeveralContainersRegisterGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		meters, needs := metric.NewMeterProvider(metric.WithReader(reader)), monitor.NewDependencies(time.Now, "memory", "broker")
		var stops []func() error
		for _, container := range []string{"behind", "idle"} {
			b := newBench(t)
			b.o.Container, b.o.Meters, b.o.Needs = container, meters, needs
			b.publish = func(ctx context.Context, _ *relay.Group) error { <-ctx.Done(); return context.Cause(ctx) }
			if container == "behind" {
				b.put("k", "e1", 1)
				b.put("k", "e2", 2)
			}
			stops = append(stops, b.run())
		}
		time.Sleep(time.Minute)
		if got := gauges(t, reader); got["outbox.lag"] != 2 || got["outbox.lease.owned of behind"] != 1 || got["outbox.lease.owned of idle"] != 1 {
			t.Errorf("gauges %v, want a lag of two and a lease of each container", got)
		}
		needs["memory"].NoteOf("behind")(errors.New("away"))
		needs["memory"].NoteOf("idle")(nil)
		for _, stop := range stops { // the relays own nothing any more
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if lag := gauges(t, reader)["outbox.lag"]; lag != 2 || !needs["memory"].Failing() {
			t.Errorf("a container does not answer: lag %d, the store fails %t", lag, needs["memory"].Failing())
		}
	})
}

// A range that was split is owned no more. Otherwise the alert for ranges without an owner never fires.
func TestOwnedLeasesAfterASplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		reader := metric.NewManualReader()
		b.o.Meters = metric.NewMeterProvider(metric.WithReader(reader))
		stop := b.run()
		for want, at := range []string{"", "80", "40"} {
			if at != "" && !b.feed.Split(at) {
				t.Fatal("the container is not split")
			}
			time.Sleep(2 * time.Minute)
			if owned := gauges(t, reader)["outbox.lease.owned"]; owned != int64(want+1) || len(b.service.Lag()) != want+1 {
				t.Errorf("%d ranges: the metric is %d, the relay owns %d", want+1, owned, len(b.service.Lag()))
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if owned := gauges(t, reader)["outbox.lease.owned"]; owned != 0 {
			t.Errorf("after the stop the metric is %d", owned)
		}
	})
}

// counted is a container that counts how often it is read.
type counted struct {
	placed
	reads atomic.Int64
}

func (c *counted) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	c.reads.Add(1)
	return c.placed.Read(ctx, req)
}

// An idle range is read about each PollMax.
func TestIdleRangeIsReadEveryPollMax(t *testing.T) {
	for most, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 2 * time.Second: 2 * time.Second, 40 * time.Second: 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			feed := &counted{placed: placed{b.feed}}
			b.store.Feed, b.o.PollMax = feed, most
			stop := b.run()
			time.Sleep(2 * time.Hour)
			before := feed.reads.Load()
			time.Sleep(time.Hour)
			if pause := time.Hour / time.Duration(feed.reads.Load()-before); pause < want*8/10 || pause > want*12/10 {
				t.Errorf("PollMax %s: read each %s, want %s", most, pause, want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// lines is a log for several goroutines.
type lines struct {
	mu  sync.Mutex // guards all
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// Events that are missing are lost if the relay had read the range up to them, and may have been sent long
// ago if it reads from the beginning, also after an operator's rewind.
func TestGapAfterResumedCheckpointIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		log := &lines{}
		b.o.Logger = slog.New(slog.NewTextHandler(log, nil))
		put := func(key string) {
			b.feed.Put(memfeed.Document{Key: key, ID: key, Data: map[string]any{"sequence": 4}, More: map[string]any{"partitionKey": key, "type": "order"}})
			time.Sleep(time.Minute)
		}
		want := func(when, key string, lost ...bool) {
			t.Helper()
			var got []bool
			for _, line := range strings.Split(log.String(), "\n") {
				if strings.Contains(line, "key="+key+" first=0 last=4") {
					got = append(got, strings.Contains(line, "lost=true"))
				}
			}
			if !slices.Equal(got, lost) {
				t.Errorf("%s: %s was reported as lost %v, want %v", when, key, got, lost)
			}
		}
		put("before")
		stop := b.run()
		time.Sleep(time.Minute)
		want("read from the beginning", "before", false)
		put("later")
		want("in the first ownership, after the range was caught up", "later", true)
		if err := stop(); err != nil {
			t.Error(err)
		}
		put("between")
		stop = b.run()
		time.Sleep(time.Minute)
		want("read from the checkpoint", "between", true)
		operator := changefeed.NewOperator(b.feed, b.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		must(t, operator.Rewind(t.Context(), changefeed.FromBeginning()))
		time.Sleep(time.Minute)
		want("after a rewind", "before", false, false)
		put("after")
		want("after the range was caught up again", "after", true)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
