package relayservice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
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
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/document"
)

// bench is a relay of a store and a broker in memory.
type bench struct {
	t     *testing.T
	feed  *memfeed.Container
	lot   memoryLot
	store relayport.Store
	o     relayservice.Options

	publish func(ctx context.Context, g *relay.Group) error
	closed  atomic.Int32
	report  func(ctx context.Context, r relay.BatchReport) // what New gave to the broker
	service *relayservice.Service
	mu      sync.Mutex
	got     []string
}

type memoryLot struct{ *parkedtest.Memory }

func (l memoryLot) Gates(ctx context.Context) (gates []relay.Gate, err error) {
	keys, err := l.Closed(ctx)
	for _, key := range keys {
		g, gateErr := l.Gate(ctx, key)
		gates, err = append(gates, g), errors.Join(err, gateErr)
	}
	return gates, err
}

// placed is a container in memory that knows where keys lie.
type placed struct{ *memfeed.Container }

func (placed) Place(key string) (string, error) { return memfeed.EPK(key), nil }

type noEvents struct{ relayport.Events } // a relay does not call OfKey

func (noEvents) Event(_ context.Context, _, id string) ([]byte, error) {
	return nil, fault.Missing("event", id)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, feed: memfeed.New(nil), lot: memoryLot{parkedtest.NewMemory()}}
	b.store = relayport.Store{
		Name: "memory", Feed: placed{b.feed}, Decoder: document.EventDecoder{}, Events: noEvents{nil}, Leases: memstore.New(nil), Parked: b.lot,
		Verify: func(context.Context) error { return nil },
	}
	b.o = relayservice.Options{Instance: "a", Logger: slog.New(slog.DiscardHandler)}
	b.publish = func(context.Context, *relay.Group) error { return nil }
	return b
}

// Publish implements relay.Publisher.
func (b *bench) Publish(ctx context.Context, groups []relay.Group) error {
	failed := &relay.PublishError{}
	for i := range groups {
		if err := b.publish(ctx, &groups[i]); err != nil {
			failed.Keys = append(failed.Keys, relay.KeyError{Group: i, Err: err})
			continue
		}
		b.mu.Lock()
		for _, m := range groups[i].Messages {
			b.got = append(b.got, strings.Clone(m.ID))
		}
		b.mu.Unlock()
	}
	if len(failed.Keys) > 0 {
		return failed
	}
	return nil
}

// Close implements relayport.Publisher.
func (b *bench) Close(context.Context) error {
	b.closed.Add(1)
	return nil
}

func (b *bench) put(key, id string, sequence int) {
	b.feed.Put(memfeed.Document{
		Key: key, ID: id, Data: map[string]any{"action": "E", "sequence": sequence}, More: map[string]any{"partitionKey": key, "type": "domainEvent"},
	})
}

func (b *bench) sent() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.got, " ")
}

// run runs the relay until stop, which returns what Run does.
func (b *bench) run() (stop func() error) {
	b.t.Helper()
	s, err := relayservice.New(b.store, relayport.Broker{
		Name: "broker", System: "memory", Destination: "here",
		Open: func(_ *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			b.report = sent
			return b, nil
		},
	}, &b.o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.service = s
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

// A part that ends, with an error or without, ends the relay, which says so.
func TestEndedPartStopsTheRelay(t *testing.T) {
	for says, upkeep := range map[string]func(context.Context) error{
		"upkeep of the store: ended unexpectedly": func(context.Context) error { return nil },
		"upkeep of the store: out of order":       func(context.Context) error { return errors.New("out of order") },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.store.Upkeep = upkeep
			stop := b.run()
			time.Sleep(time.Minute)
			if b.closed.Load() != 1 {
				t.Errorf("%s: the relay goes on", says)
			}
			if err := stop(); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("ended with %v, want %q", err, says)
			}
		})
	}
}

// A relay may be stopped before the store has answered.
func TestStopDuringTheStartIsNoError(t *testing.T) {
	b := newBench(t)
	b.store.Verify = func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("read the database: %w", ctx.Err()) }
	if err := b.run()(); err != nil {
		t.Errorf("the relay ends with %v", err)
	}
}

// A relay that has ended is not ready, whether it was stopped or a part of it failed.
func TestEndedRelayIsNotReady(t *testing.T) {
	for name, upkeep := range map[string]func(context.Context) error{"stopped": nil, "failed": func(context.Context) error { time.Sleep(time.Minute); return errors.New("out of order") }} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.store.Upkeep = upkeep
			b.put("k", "e1", 1)
			stop := b.run()
			time.Sleep(30 * time.Second)
			if err := b.service.Ready(); err != nil {
				t.Errorf("%s: not ready before: %v", name, err)
			}
			time.Sleep(time.Minute)
			if upkeep == nil {
				_ = stop()
			}
			if b.service.Ready() == nil {
				t.Errorf("%s: a relay that sends nothing any more is ready", name)
			}
			if upkeep != nil {
				_ = stop()
			}
		})
	}
}

// A relay whose changes wait on purpose is ready, and so is one that sends its first change for a while.
func TestRelayIsReadyWhileNothingIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.publish = func(context.Context, *relay.Group) error { time.Sleep(2 * time.Second); return nil }
		stop := b.run()
		time.Sleep(10 * time.Minute)
		b.put("k", "e1", 1)
		for range 10 {
			time.Sleep(time.Second)
			if err := b.service.Ready(); err != nil {
				t.Errorf("while it sends: %v", err)
			}
		}
		operator := changefeed.NewOperator(b.store.Feed, b.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		if err := operator.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.put("k", "e2", 2)
		time.Sleep(10 * time.Minute)
		if lag := b.service.Lag(); len(lag) != 1 || !lag[0].Paused || !lag[0].Known || lag[0].Transactions != 1 {
			t.Errorf("lag %+v", lag)
		}
		if err := b.service.Ready(); err != nil {
			t.Errorf("while an operator has paused it: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The other parts go on until the processor has drained, and the publisher is closed when
// all have ended.
func TestRelayStopsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var mu sync.Mutex
		var steps []string
		step := func(what string) { mu.Lock(); defer mu.Unlock(); steps = append(steps, what) }
		b.store.Upkeep = func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			step(fmt.Sprintf("upkeep, %d closed", b.closed.Load()))
			return nil
		}
		b.publish = func(context.Context, *relay.Group) error {
			time.Sleep(3 * time.Second)
			step("sent")
			return nil
		}
		b.put("k", "e1", 1)
		stop := b.run()
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(steps, "; "); got != "sent; upkeep, 0 closed" || b.closed.Load() != 1 {
			t.Errorf("%s; closed %d times", got, b.closed.Load())
		}
	})
}

// A drain ends at DrainTimeout.
func TestStopOfRelayHasDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.o.DrainTimeout = 3 * time.Second
		b.publish = func(ctx context.Context, _ *relay.Group) error { <-ctx.Done(); return context.Cause(ctx) }
		b.put("k", "e1", 1)
		stop := b.run()
		time.Sleep(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("stopped after %s", took)
		}
	})
}

// An event that waits while others are sent is parked after WaitLimit; it is sent from there
// once the broker takes it.
func TestWaitingEventIsParkedAfterWaitLimit(t *testing.T) {
	for name, limit := range map[string]time.Duration{"the default": 0, "ten minutes": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.o.WaitLimit = limit
				var away atomic.Bool
				away.Store(true)
				b.publish = func(_ context.Context, g *relay.Group) error {
					if g.Key == "k" && away.Load() {
						return &relay.Error{Class: relay.Outage, Reason: "test", Err: errors.New("away")}
					}
					return nil
				}
				b.put("k", "e1", 1)
				stop := b.run()
				began := time.Now()
				var parked time.Duration
				for n := 0; parked == 0 && time.Since(began) < time.Hour; n++ {
					b.put(fmt.Sprint("other-", n), fmt.Sprint("o", n), 1)
					time.Sleep(time.Second)
					if keys, err := b.lot.Closed(t.Context()); err != nil || len(keys) > 0 {
						parked = time.Since(began)
					}
				}
				least := max(limit, time.Minute)
				if parked < least || parked > least+30*time.Second {
					t.Errorf("parked after %s, want %s", parked, least)
				}
				away.Store(false)
				time.Sleep(5 * time.Minute)
				if keys, err := b.lot.Closed(t.Context()); err != nil || len(keys) > 0 || !strings.HasSuffix(b.sent(), "e1") {
					t.Errorf("sent %.200s; parked keys %v, error %v", b.sent(), keys, err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// sized notes the page size that was asked for last.
type sized struct {
	placed
	asked *atomic.Int64
}

func (s sized) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	s.asked.Store(int64(req.MaxItems))
	return s.placed.Read(ctx, req)
}

// A negative EventTTL means that events do not expire, so their age is no reason for a warning. The metric lets
// the alert know the TTL.
func TestEventsThatDoNotExpireAreNotReportedAsOld(t *testing.T) {
	for ttl, metrics := range map[time.Duration]float64{0: 864000, -1: math.Inf(1)} {
		warned := ttl == 0
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			var log bytes.Buffer
			var seconds float64
			b.o.EventTTL, b.o.Logger = ttl, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			reader := metric.NewManualReader()
			b.o.Meters = metric.NewMeterProvider(metric.WithReader(reader))
			b.publish = func(context.Context, *relay.Group) error { return errors.New("down") }
			b.put("k", "e1", 1)
			time.Sleep(200 * time.Hour) // most of the default
			stop := b.run()
			time.Sleep(2 * time.Minute)
			var all metricdata.ResourceMetrics
			must(t, reader.Collect(t.Context(), &all))
			for _, m := range all.ScopeMetrics[0].Metrics {
				if g, is := m.Data.(metricdata.Gauge[float64]); is && m.Name == "outbox.event.ttl" {
					seconds = g.DataPoints[0].Value
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if seconds != metrics {
				t.Errorf("EventTTL %s: the metric is %v, want %v", ttl, seconds, metrics)
			}
			if got := strings.Contains(log.String(), "grow old"); got != warned {
				t.Errorf("EventTTL %s: warned of old events: %t\n%s", ttl, got, log.String())
			}
		})
	}
}

// Where a container is read from that was never read before, through which leases, and what
// the broker's batches tell.
func TestOptionsReachTheParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		wrapped := memstore.New(nil)
		b.o.Start, b.o.Processor = changefeed.FromNow(), "mine"
		var asked atomic.Int64
		b.store.Feed, b.store.MaxItems, b.o.MaxItems = sized{placed{b.feed}, &asked}, 7, 3
		b.o.WrapLeases = func(changefeed.LeaseStore) changefeed.LeaseStore { return wrapped }
		b.o.Needs = monitor.NewDependencies(time.Now, "memory", "broker")
		b.put("k", "before", 1)
		stop := b.run()
		time.Sleep(time.Minute)
		b.put("k", "after", 2)
		time.Sleep(time.Minute)
		if got := b.sent(); got != "after" {
			t.Errorf("sent %q, want what was stored since the relay began", got)
		}
		records, err := wrapped.List(t.Context(), "mine")
		if err != nil || len(records) < 2 {
			t.Errorf("%d records of the processor in the store that was given, error %v", len(records), err)
		}
		if !slices.ContainsFunc(records, func(r changefeed.Record) bool { return strings.Contains(string(r.Body), `"Owner":"a"`) }) {
			t.Error("no lease is of the name that the relay was given")
		}
		if asked.Load() != 3 {
			t.Errorf("pages of %d are asked for, want 3 as the relay was told, whatever suits the store", asked.Load())
		}
		b.report(t.Context(), relay.BatchReport{Err: &relay.Error{Class: relay.Blocked, Reason: "entity_not_found"}})
		if !b.o.Needs["broker"].Failing() || b.o.Needs["memory"].Failing() {
			t.Error("a batch that failed is not told of the broker")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A broker that refuses every key as it would refuse one bad message has a fault of its set-up.
func TestRefusalOfEveryKeyIsAFailureOfTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.o.Needs = monitor.NewDependencies(time.Now, "memory", "broker")
		b.publish = func(context.Context, *relay.Group) error {
			return &relay.Error{Class: relay.Refused, Ambiguous: true, Reason: "not_allowed"}
		}
		for n := range 5 {
			b.put(fmt.Sprint("k", n), fmt.Sprint("e", n), 1)
		}
		stop := b.run()
		time.Sleep(time.Minute)
		if !b.o.Needs["broker"].Failing() {
			t.Error("sends are paused because the broker refuses every key, and it counts as one that works")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// owners returns the names of the owners of all leases.
func (b *bench) owners(t *testing.T) map[string]bool {
	t.Helper()
	records, err := b.store.Leases.List(t.Context(), b.o.Processor)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]bool{}
	for _, r := range records {
		var lease struct{ Owner string }
		if err := json.Unmarshal(r.Body, &lease); err == nil && lease.Owner != "" {
			owners[lease.Owner] = true
		}
	}
	return owners
}

// Siblings add up what a host is due of several containers by its name.
func TestSiblingsOfAProcessHaveOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var siblings changefeed.Siblings
		owners := map[string]bool{}
		for range 2 {
			b := newBench(t)
			b.o.Instance, b.o.Processor, b.o.Siblings = "", "mine", &siblings
			stop := b.run()
			defer func() {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}()
			time.Sleep(time.Minute)
			maps.Copy(owners, b.owners(t))
		}
		if len(owners) != 1 {
			t.Errorf("owners %v, want one name for both containers", owners)
		}
	})
}

// Two relays of one program need no option to be distinguished. Without a name of its container, the log has none.
func TestRelaysWithoutAnInstanceHaveTheirOwnNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		log := &lines{}
		b.o.Instance, b.o.Processor, b.o.Logger = "", "mine", slog.New(slog.NewTextHandler(log, nil))
		if !b.feed.Split("80") {
			t.Fatal("the container is not split")
		}
		first, second := b.run(), b.run()
		time.Sleep(5 * time.Minute)
		owners := b.owners(t)
		if text := log.String(); len(owners) != 2 || strings.Contains(text, "instance name") || !strings.Contains(text, "lease acquired") || strings.Contains(text, "container=") {
			t.Errorf("owners %v, want two; log:\n%s", owners, text)
		}
		if err := errors.Join(first(), second()); err != nil {
			t.Error(err)
		}
	})
}
