//go:build faults

package crash

import (
	"context"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/jackc/pgx/v5"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// In an outage, feedbox lag, the page, /readyz, the metrics and the alerts must say the same: an
// operator who looks at one of them must not conclude that nothing waits.
//
//	step             lag         /readyz               metrics                page     alerts
//	healthy          healthy     200                   all known              flows    none
//	paused           paused      200                   paused, lag known      paused   RangesPaused
//	store away       no answer   200, cosmos fails     up 0                   unknown  DependencyFails
//	broker away      retrying    200, serviceBus fails up 0, lag known        broker   DependencyFails
//	silent store     unread      503                   unknown with a reason  unknown  LagUnknown      (full count only: 45 s)
//	held feed        held        200                   lag known, held        held     (PostgreSQL)
//	topic missing    retrying    200, serviceBus fails up 0                   broker   DependencyFails
func TestEveryPlaceShowsAnOutage(t *testing.T) {
	w := start(t, plan{seed: testkit.Seed(t, 36), contacts: 40, rate: 20})
	network, behind := w.e.Through(t)
	v := w.observed(behind)
	w.settled()

	v.healthy(t, "healthy", true)

	w.feedboxCommand(v.env, "leases", "pause", "--all", "--yes")
	v.until(t, "paused", func(s *view) string {
		lag, known := s.gauge("outbox_lag")
		paused, n := s.gauge("outbox_range_paused")
		oldest, _ := s.gauge("outbox_oldest_unpublished_seconds")
		return firstOf(
			expect(s.all("paused") && s.behind > 20, "feedbox lag"),
			expect(s.ready == http.StatusOK, "/readyz"),
			expect(known == len(s.health) && lag > 20 && oldest > 1 && int(paused) == n && n == known, "metrics"),
			expect(s.fires(v, "FeedboxRangesPaused"), "alerts"),
			expect(strings.Contains(s.page, "aused") && !s.flows(), "the page"),
		)
	})
	w.feedboxCommand(v.env, "leases", "resume", "--all")
	v.healthy(t, "resumed", false)

	network.Cosmos.Refuse(true)
	v.until(t, "store away", func(s *view) string {
		up, n := s.gauge("outbox_dependency_up", `dependency="cosmos"`)
		return firstOf(
			expect(s.cli != "", "feedbox lag answers"),
			expect(s.ready == http.StatusOK && strings.Contains(s.body, `"cosmos":{"status":"failing"`), "/readyz"),
			expect(n == 1 && up == 0, "metrics"),
			expect(s.fires(v, "FeedboxDependencyFails"), "alerts"),
			expect(!s.flows(), "the page"),
		)
	})
	network.Cosmos.Refuse(false)
	v.healthy(t, "the store is back", false)

	brokerAway := func(step string) {
		t.Helper()
		v.until(t, step, func(s *view) string {
			up, n := s.gauge("outbox_dependency_up", `dependency="serviceBus"`)
			lag, known := s.gauge("outbox_lag")
			return firstOf(
				expect(s.some("retrying") && s.behind > 0, "feedbox lag"),
				expect(s.ready == http.StatusOK && strings.Contains(s.body, `"serviceBus":{"status":"failing"`), "/readyz"),
				expect(n == 1 && up == 0 && known == len(s.health) && lag > 0, "metrics"),
				expect(s.fires(v, "FeedboxDependencyFails"), "alerts"),
				expect(strings.Contains(s.page, "Service Bus") && !s.flows(), "the page"),
			)
		})
	}
	network.ServiceBus.Refuse(true)
	brokerAway("broker away")
	network.ServiceBus.Refuse(false)
	v.healthy(t, "the broker is back", false)

	if testkit.Scale(t) == 1 { // it takes as long as the reads of a range must be silent until they are reported
		network.Cosmos.Set(testkit.Way{}, testkit.Way{Hold: true})
		v.until(t, "silent store", func(s *view) string {
			return firstOf(
				expect(s.cli != "", "feedbox lag answers"),
				expect(s.ready != http.StatusOK || strings.Contains(s.body, "failing"), "/readyz"),
				expect(s.fires(v, "FeedboxDependencyFails"), "alerts"),
				expect(!s.flows(), "the page"),
			)
		})
		network.Heal()
		v.healthy(t, "the store replies", false)
	}

	w.deleteTopic()
	brokerAway("topic missing")
	w.drain()
}

// healthy waits until every place shows that events flow. Rules over minutes still fire after an outage,
// so alerts are looked at on request.
func (v *views) healthy(t *testing.T, step string, alerts bool) {
	t.Helper()
	v.until(t, step, func(s *view) string {
		lag, known := s.gauge("outbox_lag")
		paused, _ := s.gauge("outbox_range_paused")
		_, unknown := s.gauge("outbox_lag_unknown")
		up, needs := s.gauge("outbox_dependency_up")
		return firstOf(
			expect(s.cli == "" && s.all("healthy"), "feedbox lag is not healthy"),
			expect(s.ready == http.StatusOK && !strings.Contains(s.body, "failing"), "/readyz"),
			expect(known == len(s.health) && known > 0 && lag < 100 && unknown == 0 && paused == 0 && int(up) == needs && needs == 2, "metrics"),
			expect(!alerts || v.prom == "" || len(s.alerts) == 0, "an alert"),
			expect(s.flows(), "the page does not flow"),
		)
	})
}

// An open transaction of another program holds back the feed of PostgreSQL: events wait although every
// read succeeds.
func TestEveryPlaceShowsAHeldFeed(t *testing.T) {
	url := servers.StartPostgres(t).Database(t)
	store := []string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=" + url, "FEEDBOX_POSTGRES_MIGRATE=true"}
	w := &world{t: t, binaries: testkit.Build(t)}
	w.dev, w.e = testkit.StartDev(t, w.binaries, testkit.EmulatorPorts("--ephemeral")...)
	_, w.base = testkit.StartAPI(t, w.binaries, w.e, store...)
	v := w.observed(w.e, store...)
	w.begin(plan{seed: testkit.Seed(t, 37), contacts: 10, rate: 20})
	v.healthy(t, "healthy", false)

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	open, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	v.until(t, "held", func(s *view) string {
		lag, known := s.gauge("outbox_lag")
		oldest, _ := s.gauge("outbox_oldest_unpublished_seconds")
		held, n := s.gauge("outbox_feed_held_seconds")
		return firstOf(
			expect(s.some("held") && s.behind > 0, "feedbox lag"),
			expect(s.ready == http.StatusOK, "/readyz"),
			expect(known == len(s.health) && lag > 0 && oldest > 1 && n == 1 && held > 1, "metrics"),
			expect(strings.Contains(s.page, "held") && !s.flows(), "the page"),
		)
	})
	if err := open.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.healthy(t, "the transaction has ended", false)
	w.drain()
}

// observed starts a relay that connects to the emulators at e, a console and Prometheus.
func (w *world) observed(e testkit.Endpoints, more ...string) *views {
	w.t.Helper()
	ops, page := servers.Address(w.t), servers.Address(w.t)
	w.addRelayAt(e, append(slices.Clone(more), "FEEDBOX_OPS_LISTEN="+ops)...)
	env := e.ServiceEnv("FEEDBOX_SERVICEBUS_CONNECTION_STRING="+e.ServiceBusConnectionString, "FEEDBOX_SERVICEBUS_TOPIC="+w.e.Topic)
	env = append(append(env, testkit.FastLeases()...), more...)
	testkit.Start(w.t, "feedbox console", w.binaries.Feedbox, append(slices.Clone(env), "FEEDBOX_CONSOLE_LISTEN="+page, "FEEDBOX_CONSOLE_METRICS=http://"+ops+"/metrics"), "console")
	return &views{feedbox: w.binaries.Feedbox, env: env, ops: "http://" + ops, page: "http://" + page, prom: startPrometheus(w.t, "http://"+ops)}
}

// feedboxCommand runs a command, which must succeed.
func (w *world) feedboxCommand(env []string, args ...string) {
	w.t.Helper()
	cmd := exec.Command(w.binaries.Feedbox, args...)
	cmd.Env = testkit.Environ(env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("feedbox %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// redirectTo sends requests of the admin client to the emulator's admin API.
type redirectTo struct{ base *url.URL }

// Do implements policy.Policy.
func (r redirectTo) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	raw.URL.Scheme, raw.URL.Host, raw.Host = r.base.Scheme, r.base.Host, r.base.Host
	return req.Next()
}

func (w *world) deleteTopic() {
	w.t.Helper()
	base, err := url.Parse(w.e.ServiceBusAdmin)
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := admin.NewClientFromConnectionString(w.e.ServiceBusConnectionString, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{PerRetryPolicies: []policy.Policy{redirectTo{base}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := client.DeleteTopic(w.t.Context(), w.e.Topic, nil); err != nil {
		w.t.Fatal(err)
	}
}

func expect(ok bool, what string) string {
	if ok {
		return ""
	}
	return what
}

func firstOf(faults ...string) string {
	for _, f := range faults {
		if f != "" {
			return f
		}
	}
	return ""
}

func (s *view) all(health string) bool {
	return len(s.health) > 0 && !slices.ContainsFunc(s.health, func(h string) bool { return !strings.HasPrefix(h, health) })
}

func (s *view) some(health string) bool {
	return slices.ContainsFunc(s.health, func(h string) bool { return strings.HasPrefix(h, health) })
}

// fires reports whether an alert fires; true without Prometheus.
func (s *view) fires(v *views, alert string) bool { return v.prom == "" || s.alerts[alert] }

// flows reports whether the page claims that all is well.
func (s *view) flows() bool {
	return strings.Contains(s.page, "Everything flows") || strings.Contains(s.page, "every key flows") || strings.Contains(s.page, "no backlog")
}
