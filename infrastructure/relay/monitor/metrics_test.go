package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"feedbox/application/mediator"
	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
	"feedbox/infrastructure/httpapi"
	contactsapi "feedbox/infrastructure/httpapi/contacts"
	"feedbox/infrastructure/process/telemetry"
)

// gates is a lot that holds them, or fails.
type gates struct {
	all []relay.Gate
	err error
}

func (g *gates) Gates(context.Context) ([]relay.Gate, error) { return g.all, g.err }

// accepting is a publisher that answers with err.
type accepting struct{ err error }

func (a accepting) Publish(context.Context, []relay.Group) error { return a.err }

// allMetrics has everything happen that is measured, in both processes, and returns what
// they then serve.
func allMetrics(t *testing.T) string {
	t.Helper()
	tel, err := telemetry.Start(t.Context(), "feedbox-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.WithoutCancel(t.Context())) })
	m, err := NewMetrics(tel.Meters, "", "servicebus", "contacts")
	if err != nil {
		t.Fatal(err)
	}
	lag := func() []changefeed.RangeLag {
		return []changefeed.RangeLag{
			{Lease: changefeed.Lease{ID: "p..-80"}, Transactions: 3, Withheld: 2, Age: time.Minute, Known: true, Paused: true, Read: time.Now().Add(-time.Hour)},
			{Lease: changefeed.Lease{ID: "p..80-FF"}, Unknown: changefeed.UnknownUnread},
		}
	}
	needs := NewDependencies(time.Now, "cosmos", "serviceBus", "not used yet")
	needs["cosmos"].Note(nil)
	needs["serviceBus"].Note(errors.New("away"))
	held := func() time.Duration { return time.Minute }
	lags := &LagGauge{Lag: lag, Failing: needs["cosmos"].Failing, Now: time.Now, Held: held, TTL: time.Hour}
	if err := errors.Join(lags.Register(tel.Meters), needs.Register(tel.Meters)); err != nil {
		t.Fatal(err)
	}
	gauge := &ParkedGauge{Lot: &gates{all: []relay.Gate{{Key: "a", Events: 2}, {Key: "b", Events: 3}}}, Every: time.Minute, Log: slog.New(slog.DiscardHandler)}
	if err := gauge.Register(tel.Meters); err != nil {
		t.Fatal(err)
	}
	if err := (&ParkedGauge{}).Register(tel.Meters); err != nil { // one that was not read yet
		t.Fatal(err)
	}
	gauge.count(t.Context())
	gauge.Lot = &gates{err: errors.New("away")} // which changes nothing yet
	gauge.count(t.Context())

	m.Batch(t.Context(), relay.BatchReport{Messages: 1, Accepted: 1, Took: time.Millisecond})
	m.Batch(t.Context(), relay.BatchReport{Messages: 3, Accepted: 2, Took: time.Millisecond, Err: &relay.Error{Class: relay.Blocked, Reason: "no_queue"}})
	m.Batch(t.Context(), relay.BatchReport{Messages: 1, Took: 15 * time.Second, Err: &relay.Error{Class: relay.Outage, Reason: "send_timeout"}})
	now := time.Date(2026, 1, 31, 8, 0, 2, 0, time.UTC)
	publisher := &timedPublisher{Publisher: accepting{&relay.PublishError{Keys: []relay.KeyError{{Group: 1, Sent: 1, Err: errors.New("x")}, {Group: 4, Err: errors.New("x")}}}}, took: m.delivered, now: func() time.Time { return now }}
	message := func(created string) relay.Message { return relay.Message{CreatedAt: created} }
	_ = publisher.Publish(t.Context(), []relay.Group{
		{Key: "all", Messages: []relay.Message{message("2026-01-31T08:00:00Z"), message("2026-01-31T08:00:01.5Z")}},
		{Key: "one", Messages: []relay.Message{message("2026-01-31T08:00:00Z"), message("2026-01-31T07:00:00Z")}},
		{Key: "unknown", Messages: []relay.Message{message("")}},
		{Key: "future", Messages: []relay.Message{message("2026-01-31T09:00:00Z")}},
		{Key: "none", Messages: []relay.Message{message("2026-01-31T07:00:00Z")}},
	})
	hooks := m.Hooks(RelayLog(slog.New(slog.DiscardHandler)), time.Now)
	hooks.Handled(t.Context(), relay.Summary{Resent: 1, Oldest: time.Now()})
	hooks.Paused(t.Context(), relay.Pause{Err: errors.New("away")})
	hooks.Parked(t.Context(), relay.ParkedEvent{Reason: "too_large"})
	hooks.Missing(t.Context(), relay.Missing{Lost: true, First: 1, Last: 2})
	o := m.Observer()
	o.LeaseAcquired(changefeed.LeaseAcquired{})
	o.LeaseReleased(changefeed.LeaseReleased{})
	o.LeaseLost(changefeed.LeaseLost{})
	o.PageRead(changefeed.PageRead{RequestCharge: 1})
	o.BatchHandled(changefeed.BatchHandled{})
	o.CheckpointWritten(changefeed.CheckpointWritten{})

	kit := startConsumer(t, tel)
	e := &consumer.Event{CreatedAt: time.Now()}
	kit.Received(t.Context())
	_ = kit.Handle(t.Context(), e) // fails
	kit.Observe(t.Context(), consumer.Outcome{Event: e})

	api, err := httpapi.New([]httpapi.Resource{contactsapi.Resource(mediator.New())}, &httpapi.Options{Meters: tel.Meters})
	if err != nil {
		t.Fatal(err)
	}
	api.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/nowhere", nil))
	scrape := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(scrape.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startConsumer creates the metrics of a consumer kit.
func startConsumer(t *testing.T, tel *telemetry.Telemetry) *handling.Runner {
	t.Helper()
	r := &handling.Runner{
		Source: handling.Source{System: "servicebus", Destination: "contacts", Subscription: "billing"}, Meters: tel.Meters,
		Log: slog.New(slog.DiscardHandler), Handler: func(context.Context, *consumer.Event) error { return errors.New("x") },
	}
	if err := r.Init(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMetricsOfParkingAndDelivery(t *testing.T) {
	text := allMetrics(t)
	for _, want := range []string{
		`(?m)^outbox_parked_keys\{.*\} 2$`, `(?m)^outbox_parked_waiting\{.*\} 5$`,
		`(?m)^outbox_delivery_duration_seconds_count\{.*\} 4$`, // what was not accepted, or tells no time, does not count
		`(?m)^outbox_delivery_duration_seconds_sum\{.*\} 4\.5$`,
		`(?m)^outbox_dependency_up\{dependency="cosmos".*\} 1$`, `(?m)^outbox_dependency_up\{dependency="serviceBus".*\} 0$`,
		`(?m)^messaging_client_sent_messages_total\{.*\} 3$`, // also those beside a failed message
		`(?m)^outbox_lag\{lease="[0-9a-f]{8}".*\} 3$`,
		`(?m)^outbox_lag_withheld\{.*\} 2$`,
		`(?m)^outbox_lag_unknown\{.*reason="unread".*\} 1$`,
		`(?m)^outbox_range_paused\{.*\} 1$`, `(?m)^outbox_range_paused\{.*\} 0$`,
		`(?m)^outbox_range_read_age_seconds\{.*\} 36\d\d`,
		`(?m)^outbox_feed_held_seconds\{.*\} 60$`,
		`(?m)^outbox_event_ttl_seconds\{.*\} 3600$`,
		`(?m)^messaging_client_operation_duration_seconds_count\{error_type="send_timeout".*\} 1$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no line matches %s:\n%s", want, text)
		}
	}
	for name, want := range map[string]int{"outbox_lag{": 1, "outbox_oldest_unpublished_seconds{": 1, "outbox_range_read_age_seconds{": 1} {
		if got := strings.Count(text, "\n"+name); got != want {
			t.Errorf("%d series %s, want %d: what is unknown is absent", got, name, want)
		}
	}
	if strings.Contains(text, "not used yet") {
		t.Error("a dependency that was not used yet has a series, as if it were known to be up or down")
	}
}

// The gauges of several containers of one process do not replace each other.
func TestParkedGaugeNamesItsContainer(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	for container, keys := range map[string]int{"data": 1, "orders": 2} {
		g := &ParkedGauge{Lot: &gates{all: make([]relay.Gate, keys)}, Every: time.Minute, Log: slog.New(slog.DiscardHandler), Container: container}
		if err := g.Register(meters); err != nil {
			t.Fatal(err)
		}
		g.count(t.Context())
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
			if container, _ := p.Attributes.Value("container"); m.Name == "outbox.parked.keys" {
				found[container.AsString()] = p.Value
			}
		}
	}
	if !maps.Equal(found, map[string]int64{"data": 1, "orders": 2}) {
		t.Errorf("parked keys by container: %v", found)
	}
}

// A count of parked keys that is no longer read must not look current: nobody would see that a key was
// parked since. It becomes absent, with a reason.
func TestParkedKeysAreUnknownWhileTheStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		lot := &switchedGates{gates: gates{all: []relay.Gate{{Key: "a", Events: 2}}}}
		g := &ParkedGauge{Lot: lot, Every: 30 * time.Second, Log: slog.New(slog.DiscardHandler)}
		if err := g.Register(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))); err != nil {
			t.Fatal(err)
		}
		shown := func() string {
			var all metricdata.ResourceMetrics
			if err := reader.Collect(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, scope := range all.ScopeMetrics {
				for _, m := range scope.Metrics {
					for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
						reason, _ := p.Attributes.Value("reason")
						found = append(found, fmt.Sprint(strings.TrimPrefix(m.Name, "outbox.parked."), p.Value, reason.AsString()))
					}
				}
			}
			slices.Sort(found)
			return strings.Join(found, " ")
		}
		want := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := shown(); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		want("before the first answer", "unknown1starting")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		want("after the first answer", "keys1 waiting2")
		lot.away.Store(true)
		time.Sleep(time.Minute)
		want("after two failures", "keys1 waiting2")
		time.Sleep(time.Minute)
		want("after four failures", "unknown1failed")
		lot.away.Store(false)
		time.Sleep(31 * time.Second)
		want("when the store answers again", "keys1 waiting2")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// switchedGates fails while it is away.
type switchedGates struct {
	gates
	away atomic.Bool
}

func (g *switchedGates) Gates(ctx context.Context) ([]relay.Gate, error) {
	if g.away.Load() {
		return nil, errors.New("away")
	}
	return g.gates.Gates(ctx)
}

var (
	series    = regexp.MustCompile(`\b((?:outbox|messaging|http|azure|process|go)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	labelName = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	bound     = regexp.MustCompile(`\ble=~?"([^"]*)"`)
	grouping  = regexp.MustCompile(`\bby \(([a-z_, ]+)\)`)
)

// counted finds the counters in an expression: name, matchers.
var counted = regexp.MustCompile(`(?:rate|increase)\(((?:outbox|messaging|azure)_[a-z0-9_]+_total)(?:\{([^}]*)\})?`)

// increase() of a series that appears with the value 1 is 0. So every counter of an alert or a panel must be 0
// from the start of a relay, with the labels that the expression selects and groups by.
func TestCountersOfAlertsAndDashboardStartAtZero(t *testing.T) {
	tel, err := telemetry.Start(t.Context(), "feedbox-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.WithoutCancel(t.Context())) })
	for _, container := range []string{"", "orders"} { // of a relay with one, and with several
		if _, err := NewMetrics(tel.Meters, container, "servicebus", "contacts"); err != nil {
			t.Fatal(err)
		}
	}
	startConsumer(t, tel)
	scrape := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	found := 0
	for where, expression := range expressions(t) {
		for _, counter := range counted.FindAllStringSubmatch(expression, -1) {
			found++
			labels := strings.FieldsFunc(counter[2], func(r rune) bool { return r == ',' })
			for _, by := range grouping.FindAllStringSubmatch(expression, -1) {
				for l := range strings.SplitSeq(by[1], ",") {
					labels = append(labels, strings.TrimSpace(l)+`="`)
				}
			}
			if !slices.ContainsFunc(strings.Split(scrape.Body.String(), "\n"), func(line string) bool {
				return strings.HasPrefix(line, counter[1]) && strings.HasSuffix(line, " 0") &&
					!slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(line, l) })
			}) {
				t.Errorf("%s: %s does not start at 0 with %q", where, counter[1], labels)
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d counters in the expressions", found)
	}
}

// Alerts and dashboard of the deployment speak of metrics and labels that are there.
func TestAlertsAndDashboardKnowTheMetrics(t *testing.T) {
	served := map[string][]string{} // labels, by metric
	text := allMetrics(t)
	for line := range strings.Lines(text) {
		if found := series.FindStringSubmatch(line); found != nil && !strings.HasPrefix(line, "#") {
			for _, l := range labelName.FindAllStringSubmatch(found[2], -1) {
				served[found[1]] = append(served[found[1]], l[1])
			}
			served[found[1]] = append(served[found[1]], "job")
			if name := found[1]; strings.HasPrefix(name, "outbox_lag") || strings.HasPrefix(name, "outbox_oldest") || strings.HasPrefix(name, "outbox_range") || strings.HasPrefix(name, "outbox_lease") || strings.HasPrefix(name, "outbox_parked") {
				served[name] = append(served[name], "container") // of a process with several
			}
		}
	}
	for where, expression := range expressions(t) {
		used := series.FindAllStringSubmatch(grouping.ReplaceAllString(expression, ""), -1)
		if len(used) == 0 {
			t.Errorf("%s: no metric in %s", where, expression)
		}
		var labels []string
		for _, u := range used {
			if served[u[1]] == nil {
				t.Errorf("%s: nobody serves %s", where, u[1])
			}
			for _, l := range labelName.FindAllStringSubmatch(u[2], -1) {
				if !slices.Contains(served[u[1]], l[1]) {
					t.Errorf("%s: %s has no label %s", where, u[1], l[1])
				}
			}
			// Prometheus 2 has the bound as served, such as 600; Prometheus 3 writes it as 600.0.
			if le := bound.FindStringSubmatch(u[2]); le != nil {
				if all := regexp.MustCompile("^(" + le[1] + ")$"); !all.MatchString("600") || !all.MatchString("600.0") || !strings.Contains(text, `le="600"`) {
					t.Errorf("%s: no bucket of %s has the bound %s in both ways of writing it", where, u[1], le[1])
				}
			}
			labels = append(labels, served[u[1]]...)
		}
		for _, by := range grouping.FindAllStringSubmatch(expression, -1) {
			for l := range strings.SplitSeq(by[1], ",") {
				if !slices.Contains(labels, strings.TrimSpace(l)) {
					t.Errorf("%s: groups by %s, which no metric there has", where, l)
				}
			}
		}
	}
}

// expressions are those of the alerts and the dashboard, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	const folder = "../../../bicep/kubernetes/monitoring/"
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	text, err := os.ReadFile(folder + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r.Expr
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if text, err = os.ReadFile(folder + "dashboard.json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = target.Expr
		}
	}
	if len(all) < 25 {
		t.Fatalf("only %d expressions", len(all))
	}
	return all
}
