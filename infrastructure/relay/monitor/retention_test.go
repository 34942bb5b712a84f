package monitor

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

// A relay that comes back after events have expired reports it in the log and in a counter, even if all
// events of a contact are gone and nothing in the feed shows that they existed.
func TestAbsenceLongerThanEventTTLIsReported(t *testing.T) {
	const ttl = time.Hour
	for _, c := range []struct {
		away    time.Duration
		rewound bool // by an operator meanwhile
		want    bool
	}{{ttl / 2, false, false}, {2 * ttl, false, true}, {2 * ttl, true, true}, {ttl / 2, true, false}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			feed, leases := memfeed.New(nil), memstore.New(nil)
			reader := sdkmetric.NewManualReader()
			m, err := NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), "orders", "servicebus", "contacts")
			if err != nil {
				t.Fatal(err)
			}
			startProcessor(t, feed, leases, m.Absences(ttl, time.Now, logger), 2*ttl)
			time.Sleep(c.away)
			if c.rewound {
				if err := changefeed.NewOperator(feed, leases, &changefeed.OperatorOptions{}).Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			startProcessor(t, feed, leases, m.Absences(ttl, time.Now, logger), time.Minute)
			if got := strings.Contains(log.String(), "level=ERROR"); got != c.want {
				t.Errorf("away for %v of %v: reported %t\n%s", c.away, ttl, got, log.String())
			}
			if got, want := absencesOf(t, reader, "orders"), map[bool]int64{true: 1}[c.want]; got != want {
				t.Errorf("away for %v of %v: counted %d absences, want %d", c.away, ttl, got, want)
			}
		})
	}
}

// An owner that does not read a range, such as a paused one, still renews its lease. The next read reports the absence.
func TestPauseLongerThanEventTTLIsReported(t *testing.T) {
	const ttl = time.Hour
	for pause, want := range map[time.Duration]int64{ttl / 2: 0, 2 * ttl: 1} {
		synctest.Test(t, func(t *testing.T) {
			feed, leases := memfeed.New(nil), memstore.New(nil)
			reader := sdkmetric.NewManualReader()
			m, err := NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), "orders", "servicebus", "contacts")
			if err != nil {
				t.Fatal(err)
			}
			operator := changefeed.NewOperator(feed, leases, &changefeed.OperatorOptions{})
			var relaying sync.WaitGroup
			relaying.Go(func() {
				startProcessor(t, feed, leases, m.Absences(ttl, time.Now, slog.New(slog.DiscardHandler)), 3*ttl)
			})
			time.Sleep(time.Minute)
			if err := operator.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			if err := operator.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			relaying.Wait()
			if got := max(0, absencesOf(t, reader, "orders")); got != want {
				t.Errorf("paused for %v of %v: counted %d absences, want %d", pause, ttl, got, want)
			}
		})
	}
}

// A pause in which the range changes its owner is one absence, too.
func TestPauseWithADeploymentIsReported(t *testing.T) {
	const ttl = time.Hour
	for pause, want := range map[time.Duration]int64{ttl / 3: 0, 2 * ttl / 3: 1} {
		synctest.Test(t, func(t *testing.T) {
			feed, leases := memfeed.New(nil), memstore.New(nil)
			reader := sdkmetric.NewManualReader()
			m, err := NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), "orders", "servicebus", "contacts")
			if err != nil {
				t.Fatal(err)
			}
			operator := changefeed.NewOperator(feed, leases, &changefeed.OperatorOptions{})
			run := func(long time.Duration) {
				startProcessor(t, feed, leases, m.Absences(ttl, time.Now, slog.New(slog.DiscardHandler)), long)
			}
			run(time.Minute)
			if err := operator.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			run(pause)
			run(pause)
			if err := operator.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			run(time.Minute)
			if got := max(0, absencesOf(t, reader, "orders")); got != want {
				t.Errorf("paused for twice %v of %v: counted %d absences, want %d", pause, ttl, got, want)
			}
		})
	}
}

// absencesOf returns the absences of the ranges of a container, -1 without a series.
func absencesOf(t *testing.T, reader sdkmetric.Reader, container string) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "outbox.range.absences" {
			continue
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if named, _ := p.Attributes.Value("container"); named.AsString() == container {
				return p.Value
			}
		}
	}
	return -1
}

// startProcessor reads feed for some time.
func startProcessor(t *testing.T, feed changefeed.Feed, leases changefeed.LeaseStore, o *changefeed.Observer, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	handle := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil })
	p, err := changefeed.New(feed, leases, handle, &changefeed.Options{Host: "a", Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestUnsentEventsNearTTLAreLogged(t *testing.T) {
	const ttl = 10 * 24 * time.Hour
	for _, c := range []struct {
		age   time.Duration
		level string
	}{{ttl / 5, ""}, {ttl / 3, "WARN"}, {ttl * 3 / 4, "ERROR"}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			g := Retention{
				TTL: ttl, Every: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Lag: func() []changefeed.RangeLag {
					return []changefeed.RangeLag{{Lease: changefeed.Lease{ID: "l"}, Age: c.age}}
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second)
			defer cancel()
			if err := g.Run(ctx); err != nil {
				t.Fatal(err)
			}
			got := ""
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "will expire") {
					_, rest, _ := strings.Cut(line, "level=")
					got, _, _ = strings.Cut(rest, " ")
				}
			}
			if got != c.level {
				t.Errorf("unsent for %v of %v: level %q, want %q\n%s", c.age, ttl, got, c.level, log.String())
			}
		})
	}
}
