// Package postgres tests the whole path on a server of PostgreSQL: API, relay, broker and a
// consumer, with one verifier.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/fx"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/verify"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// world is API and relay in this process, wired as in production, on a server of
// PostgreSQL and the emulator of Service Bus.
type world struct {
	server    *servers.Postgres
	url       string
	endpoints testkit.Endpoints
	relay     *config.Relay
}

func newWorld(t *testing.T, more ...string) *world {
	t.Helper()
	w := &world{server: servers.StartPostgres(t)}
	w.url = w.server.Database(t)
	bus, err := busemu.Start(&busemu.Options{})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	must(t, bus.CreateTopic(t.Context(), busemu.Topic{Name: "contacts", RequiresDuplicateDetection: true}))
	must(t, bus.CreateSubscription(t.Context(), "contacts", busemu.Subscription{Name: "all", RequiresSession: true}))
	w.endpoints = testkit.Endpoints{ServiceBusConnectionString: bus.ConnectionString(), Topic: "contacts", Subscription: "all"}
	environ := append([]string{
		"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=" + w.url, "FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + bus.ConnectionString(),
		"FEEDBOX_LEASE_EXPIRY=2s", "FEEDBOX_RELAY_POLL_MAX=50ms", "FEEDBOX_API_DRAIN_DELAY=0s", "FEEDBOX_AUDIT=true",
	}, more...)
	api, err := config.LoadAPI(environ)
	must(t, err)
	w.relay, err = config.LoadRelay(environ)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.endpoints.API = "http://" + listener.Addr().String()
	around := wiring.Params{Log: slog.New(slog.DiscardHandler)}
	inAPI := around
	inAPI.API = listener
	run(t, fx.New(wiring.Relay(w.relay, around)))
	run(t, fx.New(wiring.API(api, inAPI)))
	return w
}

// run runs a part until the test ends.
func run(t *testing.T, app *fx.App) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- wiring.Run(ctx, app, func() { close(started) }) }()
	select {
	case <-started:
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a part of the service: %v", err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored reads what the verifier needs of the database.
func (w *world) stored(t *testing.T) (aggregates []verify.Aggregate, events []verify.Event) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.url+"&search_path=feedbox")
	must(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), `SELECT id::text, version, sequence FROM aggregates`)
	must(t, err)
	aggregates, err = pgx.CollectRows(rows, pgx.RowToStructByPos[verify.Aggregate])
	must(t, err)
	rows, err = conn.Query(t.Context(), `SELECT document FROM events`)
	must(t, err)
	documents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	for _, raw := range documents {
		d, err := verify.DecodeDocument([]byte(raw))
		must(t, err)
		events = append(events, d.Event())
	}
	return aggregates, events
}

// judge waits until all that is stored has arrived, and verifies the run.
func (w *world) judge(t *testing.T, consumer *testkit.Consumer, run verify.Run) {
	t.Helper()
	run.Aggregates, run.Events = w.stored(t)
	testkit.Eventually(t, 60*time.Second, "every stored event", func() bool { return consumer.Count() >= len(run.Events) })
	time.Sleep(200 * time.Millisecond) // what comes twice comes now
	consumer.Stop()
	run.Messages = consumer.Messages()
	t.Log(run.Summary())
	for _, breach := range run.Verify() {
		t.Error(breach)
	}
}

// The contacts walk of the README, on PostgreSQL.
func TestTheWalk(t *testing.T) {
	w := newWorld(t)
	consumer := w.endpoints.StartConsumer(t, 4)
	call := func(method, path, body, match string) (*http.Response, map[string]any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, w.endpoints.API+path, strings.NewReader(body))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		response, err := http.DefaultClient.Do(r)
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		raw, err := io.ReadAll(response.Body)
		must(t, err)
		var decoded map[string]any
		_ = json.Unmarshal(raw, &decoded) // some answers have no body
		return response, decoded
	}
	const john = `{"firstName":"John","lastName":"Doe","email":"johndoe@contoso.com","companyName":"Contoso"}`
	made, _ := call(http.MethodPost, "/api/contacts", john, "")
	if made.StatusCode != http.StatusCreated || made.Header.Get("ETag") != `"1"` {
		t.Fatalf("created: %d, ETag %s", made.StatusCode, made.Header.Get("ETag"))
	}
	path := strings.TrimPrefix(made.Header.Get("Location"), w.endpoints.API)
	for _, step := range []struct {
		method, path, body, match string
		status                    int
		etag                      string
	}{
		{http.MethodGet, path, "", "", 200, `"1"`},
		{http.MethodPost, path + "/update-name", `{"firstName":"Jane","lastName":"Doe"}`, `"1"`, 204, `"2"`},
		{http.MethodPost, path + "/update-name", `{"firstName":"Joan","lastName":"Doe"}`, `"1"`, 412, ""},
		{http.MethodPost, path + "/update-email", `{"email":"jane@contoso.com"}`, "", 204, `"3"`},
		{http.MethodGet, "/api/contacts", "", "", 200, ""},
		{http.MethodGet, path + "/audit", "", "", 200, ""},
		{http.MethodDelete, path, "", "", 204, ""},
		{http.MethodGet, path, "", "", 404, ""},
	} {
		response, body := call(step.method, step.path, step.body, step.match)
		if response.StatusCode != step.status || step.etag != "" && response.Header.Get("ETag") != step.etag {
			t.Errorf("%s %s: %d, ETag %s, %v", step.method, step.path, response.StatusCode, response.Header.Get("ETag"), body)
		}
	}
	testkit.Eventually(t, 20*time.Second, "four events", func() bool { return consumer.Count() == 4 })
	w.judge(t, consumer, verify.Run{})

	// The commands of people work on it.
	o, err := wiring.Operator(w.relay, wiring.Params{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, o.Close(context.Background())) }()
	leases, err := o.Leases.Leases(t.Context())
	if err != nil || len(leases) != 4 {
		t.Errorf("%d leases, %v", len(leases), err)
	}
	testkit.Eventually(t, 20*time.Second, "no lag", func() bool {
		lags, err := o.Leases.Lag(t.Context())
		must(t, err)
		behind := int64(0)
		for _, l := range lags {
			behind += l.Transactions
		}
		return behind == 0
	})
	key := strings.TrimPrefix(path, "/api/contacts/")
	replay, err := o.PlanKeyReplay(t.Context(), key, time.Minute)
	if err != nil || len(replay.Messages) != 4 || len(replay.Missing) != 0 {
		t.Errorf("replay of %s: %+v, %v", key, replay, err)
	}
	o.Diagnose(t.Context(), operator.DoctorOptions{Found: func(f operator.Finding) {
		if f.Status == operator.FindingFailed {
			t.Errorf("doctor: %+v", f)
		}
	}})
}

// PostgreSQL is killed again and again while contacts change: what was acknowledged is
// there and arrives, once and in order.
func TestPostgresIsKilled(t *testing.T) {
	seed := testkit.Seed(t, 1)
	cycles := testkit.Count(t, 50)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	consumer := w.endpoints.StartConsumer(t, 8)
	load := &testkit.Workload{
		Base: w.endpoints.API, Client: testkit.HTTPClient(t, 8), Contacts: 40, Changes: 1_000_000, Writers: 8, Pace: 2 * time.Millisecond, Seed: int64(seed),
	}
	stop := testkit.Background(t, load)
	for cycle := range cycles {
		before := load.Done()
		testkit.Eventually(t, 60*time.Second, fmt.Sprint("changes in cycle ", cycle), func() bool { return load.Done() > before+20 })
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		w.server.Kill(t)
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		w.server.Start(t)
	}
	stop()
	var history testkit.History
	history.Add(load)
	w.judge(t, consumer, history.Run())
}
