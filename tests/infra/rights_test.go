package infra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/infra/bicep"
	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // hundreds of evaluations of the Bicep keep little
	goleak.VerifyTestMain(m)
}

// azure is the deployment on the emulators: containers, topic and rights of the Bicep.
type azure struct {
	cosmos    *cosmosemu.Server
	bus       *busemu.Server
	rights    map[string]map[string][]string
	variables map[string][]variable
}

func deployHere(t *testing.T) *azure {
	t.Helper()
	texts, source := repository(t)
	w, err := newWorld(texts, source)
	if err != nil {
		t.Fatal(err)
	}
	a := &azure{
		cosmos: cosmosemu.StartT(t, &cosmosemu.Options{TLS: true}), // tokens are not sent over plain HTTP
		bus: busemu.StartT(t, &busemu.Options{Keys: []busemu.SASKey{
			{Name: "owner", Key: "b3duZXI="}, {Name: "sender", Key: "c2VuZGVy", Rights: busemu.RightSend},
		}}),
		rights:    granted(w, w.console, t.Errorf),
		variables: map[string][]variable{},
	}
	for _, r := range w.console {
		switch r.Type {
		case container:
			a.createContainer(t, at(r.Body, "properties", "resource"))
		case app:
			a.variables[process(r)] = environment(r)
		}
	}
	a.createTopic(t, w.console)
	return a
}

func (a *azure) createContainer(t *testing.T, resource any) {
	t.Helper()
	policy, err := json.Marshal(at(resource, "indexingPolicy"))
	if err != nil {
		t.Fatal(err)
	}
	props := cosmosemu.ContainerProps{ID: text(at(resource, "id")), DefaultTTL: int(number(at(resource, "defaultTtl"))), Partitions: 2, IndexingPolicy: string(policy)}
	for _, p := range list(at(resource, "partitionKey", "paths")) {
		props.PartitionKey = append(props.PartitionKey, text(p))
	}
	if err := a.cosmos.CreateContainer("contacts", props); err != nil {
		t.Fatal(err)
	}
}

func (a *azure) createTopic(t *testing.T, resources []bicep.Resource) {
	t.Helper()
	for _, r := range resources {
		var err error
		properties := func(name string) any { return at(r.Body, "properties", name) }
		switch r.Type {
		case topic:
			err = a.bus.CreateTopic(t.Context(), busemu.Topic{
				Name:                       text(r.Body["name"]),
				RequiresDuplicateDetection: properties("requiresDuplicateDetection") == true,
				DuplicateDetectionWindow:   windows[text(properties("duplicateDetectionHistoryTimeWindow"))],
			})
		case subscription:
			err = a.bus.CreateSubscription(t.Context(), "contacts", busemu.Subscription{
				Name: text(r.Body["name"]), RequiresSession: properties("requiresSession") == true, DeadLetteringOnExpiration: properties("deadLetteringOnMessageExpiration") == true,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// environ returns the variables of a process from the Bicep, with the addresses of the
// emulators, an API without authentication, and short polls.
func (a *azure) environ(process string) []string {
	values := map[string]string{}
	for _, v := range a.variables[process] {
		if v.secret == "" {
			values[v.name] = v.value
		}
	}
	maps.Copy(values, map[string]string{
		"FEEDBOX_COSMOS_ENDPOINT": a.cosmos.Endpoint(), "FEEDBOX_OPS_LISTEN": "127.0.0.1:0", "FEEDBOX_API_LISTEN": "127.0.0.1:0",
		"FEEDBOX_AUTH": "none", "FEEDBOX_AUTH_ISSUER": "", "FEEDBOX_AUTH_AUDIENCE": "", "FEEDBOX_API_PUBLIC_URL": "",
		"FEEDBOX_API_DRAIN_DELAY": "0s", // there is no load balancer
	})
	if process == "relay" {
		maps.Copy(values, map[string]string{
			"FEEDBOX_SERVICEBUS_NAMESPACE": "", "FEEDBOX_SERVICEBUS_CONNECTION_STRING": a.bus.ConnectionStringFor("sender"),
			"FEEDBOX_RELAY_POLL_MAX": "50ms", "FEEDBOX_LEASE_EXPIRY": "2s",
		})
	}
	var environ []string
	for name, value := range values {
		environ = append(environ, name+"="+value)
	}
	return environ
}

func (a *azure) gate(process string) *gate {
	return newGate(identity(process), a.rights[process], a.cosmos.HTTPClient())
}

func surroundings(g *gate, sockets wiring.Sockets) wiring.Params {
	return wiring.Params{Sockets: sockets, Log: slog.New(slog.DiscardHandler), Version: "test", CosmosTransport: g, Credential: g.who}
}

// process builds one of the two processes as cmd/feedbox does.
func (a *azure) process(t *testing.T, name string, g *gate, sockets wiring.Sockets) *fx.App {
	t.Helper()
	if name == "api" {
		cfg, err := config.LoadAPI(a.environ(name))
		if err != nil {
			t.Fatal(err)
		}
		return fx.New(wiring.API(cfg, surroundings(g, sockets)))
	}
	cfg, err := config.LoadRelay(a.environ(name))
	if err != nil {
		t.Fatal(err)
	}
	return fx.New(wiring.Relay(cfg, surroundings(g, sockets)))
}

// run starts a process and stops it at the end of the test.
func (a *azure) run(t *testing.T, name string, g *gate) (base string) {
	t.Helper()
	listen := ""
	if name == "api" {
		listen = "127.0.0.1:0"
	}
	sockets, err := wiring.Listen(t.Context(), listen, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- wiring.Run(ctx, a.process(t, name, g, sockets), func() { close(started) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the %s did not stop cleanly: %v", name, err)
		}
	})
	select {
	case <-started:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the %s did not start: %v", name, err)
	}
	if name == "api" {
		return "http://" + sockets.API.Addr().String() + "/api/contacts"
	}
	return ""
}

// runAPIOf runs the API on another container, with the rights that it has on its own.
func (a *azure) runAPIOf(t *testing.T, container string) (base string) {
	t.Helper()
	other := *a
	other.variables = map[string][]variable{"api": append(slices.Clone(a.variables["api"]), variable{name: "FEEDBOX_COSMOS_CONTAINER", value: container})}
	rights := map[string][]string{"": a.rights["api"][""], container: a.rights["api"]["data"]}
	return other.run(t, "api", newGate("api", rights, a.cosmos.HTTPClient()))
}

// call sends one request to the API and returns the Location header of the response.
func call(t *testing.T, method, target, body string, wanted int) (location string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != wanted {
		t.Errorf("%s %s: %d, want %d: %s %v", method, target, reply.StatusCode, wanted, said, err)
	}
	return reply.Header.Get("Location")
}

// firstOf returns the container of the API, of its leases or of its parked events for one of that kind.
func firstOf(container string) string {
	switch _, kind, _ := strings.Cut(container, "-"); {
	case kind != "":
		return kind
	case container == "orders", container == "invoices":
		return "data"
	}
	return container
}

// unexercised lists rights that this test does not use, with the case that needs each.
var unexercised = map[string]string{
	"relay items/read on data":      "a parked event is sent as it stands in the store",
	"relay items/create on parked":  "an event is parked",
	"relay items/read on parked":    "a parked key is looked at",
	"relay items/replace on parked": "another event of a parked key comes",
	"relay items/delete on parked":  "a parked key is drained",
	"relay items/delete on leases":  "a relay without a lease gets one, or a range has split",
	"relay items/read on leases":    "a write of a lease was refused",
}

// TestTheServiceWorksWithTheDeployedRights runs API and relay with the rights that the
// Bicep grants, tokens instead of keys, and a key of the broker that may only send.
func TestTheServiceWorksWithTheDeployedRights(t *testing.T) {
	t.Parallel()
	a := deployHere(t)
	gates := map[string]*gate{"api": a.gate("api"), "relay": a.gate("relay")}
	a.run(t, "relay", gates["relay"])
	base := a.run(t, "api", gates["api"])

	const full = `{"firstName":"A","lastName":"B","email":"a@contoso.com","description":"d","companyName":"C"}`
	location := call(t, http.MethodPost, base, full, http.StatusCreated)
	one := base + location[strings.LastIndexByte(location, '/'):]
	call(t, http.MethodPost, one+"/update-name", `{"firstName":"X","lastName":"Y"}`, http.StatusNoContent)
	call(t, http.MethodGet, one, "", http.StatusOK)
	call(t, http.MethodGet, base, "", http.StatusOK)
	call(t, http.MethodDelete, one, "", http.StatusNoContent)
	for _, container := range []string{"orders", "invoices"} { // of services that write to them
		call(t, http.MethodPost, a.runAPIOf(t, container), full, http.StatusCreated)
	}
	testkit.Eventually(t, time.Minute, "five events arrive", func() bool {
		c, err := a.bus.Counters("contacts")
		return err == nil && c.Accepted-c.Duplicates == 5
	})

	for name, g := range gates {
		used, refused := g.report()
		if len(refused) > 0 {
			t.Errorf("the %s was refused %v", name, refused)
		}
		for scope, actions := range a.rights[name] {
			for _, action := range actions {
				right := action + " on " + scope
				if _, excused := unexercised[name+" "+action+" on "+firstOf(scope)]; !used[right] && !excused {
					t.Errorf("the %s may %s, and never did", name, right)
				}
			}
		}
		t.Logf("the %s used %v", name, slices.Sorted(maps.Keys(used)))
	}
}

// TestDoctorReportsARemovedContainer removes a container from the relay before its event was sent. The relay's
// own rights are enough to find it.
func TestDoctorReportsARemovedContainer(t *testing.T) {
	t.Parallel()
	a := deployHere(t)
	const full = `{"firstName":"A","lastName":"B","email":"a@contoso.com","description":"d","companyName":"C"}`
	orders := a.runAPIOf(t, "orders")
	t.Run("the relay reads all containers", func(t *testing.T) {
		a.run(t, "relay", a.gate("relay"))
		call(t, http.MethodPost, orders, full, http.StatusCreated)
		testkit.Eventually(t, time.Minute, "the event of orders arrives", func() bool {
			c, err := a.bus.Counters("contacts")
			return err == nil && c.Accepted == 1
		})
	})
	call(t, http.MethodPost, orders, full, http.StatusCreated)
	for remaining, want := range map[string]string{
		"FEEDBOX_RELAY_CONTAINERS=": "former containers warning: orders: 1 transactions behind, and no relay of this processor reads it", "": "",
	} {
		cfg, err := config.LoadRelay(append(a.environ("relay"), strings.Fields(remaining)...))
		if err != nil {
			t.Fatal(err)
		}
		o, err := wiring.Operator(cfg, surroundings(a.gate("relay"), wiring.Sockets{}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		o.Diagnose(t.Context(), operator.DoctorOptions{Found: func(f operator.Finding) {
			if f.Check == "former containers" {
				got = append(got, fmt.Sprintf("%s %s: %s", f.Check, f.Status, f.Detail))
			}
		}})
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("with %q: %q, want %q", remaining, got, want)
		}
	}
}

// reader has the data actions of Azure's role Cosmos DB Built-in Data Reader.
var reader = []string{"readMetadata", "executeQuery", "items/read", "readChangeFeed"}

// TestConsoleShowsEveryPageWithTheReaderRole opens all pages with an identity that may only
// read. Each shows the state of the store instead of a refusal.
func TestConsoleShowsEveryPageWithTheReaderRole(t *testing.T) {
	a := deployHere(t)
	a.run(t, "relay", a.gate("relay"))
	environ := a.environ("relay")
	cfg, err := config.LoadConsole(environ)
	if err != nil {
		t.Fatal(err)
	}
	relay, err := config.LoadRelay(environ)
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := wiring.Listen(t.Context(), "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(identity("console"), map[string][]string{"": reader}, a.cosmos.HTTPClient())
	page, err := wiring.NewPage(cfg, relay, surroundings(g, sockets), wiring.PageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- page.Run(ctx, sockets.API) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, path := range []string{"/", "/ranges", "/parked", "/events", "/events?key=k", "/events?state=parked", "/life/k", "/members", "/doctor"} {
		call(t, http.MethodGet, "http://"+sockets.API.Addr().String()+path, "", http.StatusOK)
	}
	testkit.Eventually(t, time.Minute, "the console reads all containers", func() bool {
		used, _ := g.report()
		return used["readMetadata on "] && used["executeQuery on "] && used["readChangeFeed on "]
	})
	// The doctor deletes a document that does not exist, to find a region that refuses writes. A
	// batch with a deletion asks the primary whether a gate is absent.
	allowed := []string{"items/delete on leases", "items/delete on parked"}
	if _, refused := g.report(); slices.ContainsFunc(refused, func(one string) bool { return !slices.Contains(allowed, one) }) {
		t.Errorf("the console was refused %v", refused)
	}
}

// TestKedaScalesByTheSumOfAllContainers evaluates the scaled object for several containers with the rights
// of KEDA's identity. A container that cannot be read is an error, which KEDA reports instead of a number.
func TestKedaScalesByTheSumOfAllContainers(t *testing.T) {
	a := deployHere(t)
	texts, _ := repository(t)
	object, _ := scaledForSeveral(&world{texts: texts}, t.Errorf)
	triggers := list(at(object, "spec", "triggers"))
	sum := func(g *gate) (total int64, err error) {
		for _, trigger := range triggers {
			lag, err := (&scaler{g, a.cosmos.Endpoint()}).lag(t.Context(), trigger)
			if err != nil {
				return 0, err
			}
			total += lag
		}
		return total, nil
	}
	if len(triggers) != 2 {
		t.Fatalf("%d triggers", len(triggers))
	}
	t.Run("a relay makes the leases", func(t *testing.T) {
		a.run(t, "relay", a.gate("relay"))
		testkit.Eventually(t, time.Minute, "every range has a lease", func() bool {
			_, err := sum(a.gate("keda"))
			return err == nil
		})
	})
	writer := newGate("writer", map[string][]string{"": {"items/create", "readMetadata"}}, a.cosmos.HTTPClient())
	options := &azcosmos.ClientOptions{}
	options.Transport = writer
	client, err := azcosmos.NewClient(a.cosmos.Endpoint(), writer.who, options)
	if err != nil {
		t.Fatal(err)
	}
	write := func(container string, n int) {
		c, err := client.NewContainer("contacts", container)
		for i := 0; err == nil && i < n; i++ {
			key := fmt.Sprint("k", i)
			_, err = c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), fmt.Appendf(nil, `{"id":%q,"partitionKey":%[1]q}`, key), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		container string
		n         int
		want      int64
	}{{"data", 0, 0}, {"orders", 7, 7}, {"data", 5, 12}, {"invoices", 3, 12}} { // no trigger of the example reads invoices
		write(step.container, step.n)
		if got, err := sum(a.gate("keda")); err != nil || got != step.want {
			t.Errorf("%d documents more in %s: the sum is %d, want %d: %v", step.n, step.container, got, step.want, err)
		}
	}
	for _, unreadable := range []string{"orders", "orders-leases"} {
		without := maps.Clone(a.rights["keda"])
		delete(without, unreadable)
		if got, err := sum(newGate("keda", without, a.cosmos.HTTPClient())); err == nil {
			t.Errorf("without rights on %s the sum is %d", unreadable, got)
		}
	}
}

// TestKedaMayNothingElse: it may change no lease and query no contact.
func TestKedaMayNothingElse(t *testing.T) {
	a := deployHere(t)
	s := &scaler{a.gate("keda"), a.cosmos.Endpoint()}
	for _, tc := range []struct{ method, container, header, value, body string }{
		{http.MethodPost, "data", "x-ms-documentdb-isquery", "true", `{"query":"SELECT * FROM c"}`},
		{http.MethodPost, "leases", "x-ms-documentdb-partitionkey", `["l"]`, `{"id":"l"}`},
		{http.MethodGet, "parked", "A-IM", "Incremental feed", ""},
	} {
		if reply, err := s.do(t.Context(), tc.method, tc.container+"/docs", tc.body, map[string]string{tc.header: tc.value}, nil); reply == nil || reply.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s, %s: %v", tc.method, tc.container, tc.header, err)
		}
	}
}

// TestForbiddenCallsFail makes forbidden calls as each identity.
func TestForbiddenCallsFail(t *testing.T) {
	a := deployHere(t)
	client := func(process string) *azcosmos.DatabaseClient {
		options := &azcosmos.ClientOptions{}
		options.Transport = a.gate(process)
		c, err := azcosmos.NewClient(a.cosmos.Endpoint(), identity(process), options)
		if err != nil {
			t.Fatal(err)
		}
		db, err := c.NewDatabase("contacts")
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	in := func(process, name string) *azcosmos.ContainerClient {
		c, err := client(process).NewContainer(name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx, key, item := t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(`{"id":"i","partitionKey":"k"}`)
	query := func(c *azcosmos.ContainerClient) error {
		_, err := c.NewQueryItemsPager("SELECT * FROM c", key, nil).NextPage(ctx)
		return err
	}
	for name, try := range map[string]func() error{
		"api: upsert": func() error { _, err := in("api", "data").UpsertItem(ctx, key, item, nil); return err },
		"api: delete": func() error { _, err := in("api", "data").DeleteItem(ctx, key, "i", nil); return err },
		"api: change feed": func() error {
			_, err := in("api", "data").ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{FeedRange: &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}})
			return err
		},
		"api: leases": func() error { return query(in("api", "leases")) },
		"api: parked": func() error { _, err := in("api", "parked").ReadItem(ctx, key, "i", nil); return err },
		"api: create a container": func() error {
			_, err := client("api").CreateContainer(ctx, azcosmos.ContainerProperties{ID: "x"}, nil)
			return err
		},
		"relay: create":             func() error { _, err := in("relay", "data").CreateItem(ctx, key, item, nil); return err },
		"relay: replace":            func() error { _, err := in("relay", "data").ReplaceItem(ctx, key, "i", item, nil); return err },
		"relay: delete":             func() error { _, err := in("relay", "data").DeleteItem(ctx, key, "i", nil); return err },
		"relay: query":              func() error { return query(in("relay", "data")) },
		"relay: delete a container": func() error { _, err := in("relay", "leases").Delete(ctx, nil); return err },
		"relay: batch": func() error {
			b := in("relay", "data").NewTransactionalBatch(key)
			b.CreateItem(item, nil)
			_, err := in("relay", "data").ExecuteTransactionalBatch(ctx, b, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var reply *azcore.ResponseError
			if err := try(); !errors.As(err, &reply) || reply.StatusCode != http.StatusForbidden || !strings.Contains(err.Error(), "required RBAC permissions") {
				t.Errorf("it was not forbidden: %v", err)
			}
		})
	}
	t.Run("relay: receive", func(t *testing.T) {
		c, err := azservicebus.NewClientFromConnectionString(a.bus.ConnectionStringFor("sender"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		_, err = c.AcceptNextSessionForSubscription(ctx, "contacts", "contacts", nil)
		var refused *azservicebus.Error
		if !errors.As(err, &refused) || refused.Code != azservicebus.CodeUnauthorizedAccess {
			t.Errorf("it was not refused: %v", err)
		}
	})
}

// TestWithoutARightTheServiceFails removes one right at a time. The service must fail, which
// shows that the right is needed.
func TestWithoutARightTheServiceFails(t *testing.T) {
	a := deployHere(t)
	for _, name := range []string{"api", "relay"} {
		t.Run(name+" without metadata", func(t *testing.T) {
			without := maps.Clone(a.rights[name])
			delete(without, "")
			sockets, err := wiring.Listen(t.Context(), "127.0.0.1:0", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer sockets.Close()
			g := newGate(identity(name), without, a.cosmos.HTTPClient())
			err = wiring.Run(t.Context(), a.process(t, name, g, sockets), nil)
			if err == nil || !strings.Contains(err.Error(), "start") {
				t.Errorf("it started: %v", err)
			}
		})
	}
	for action, wanted := range map[string]string{"items/create": http.MethodPost, "executeQuery": http.MethodGet} {
		t.Run("api without "+action, func(t *testing.T) {
			without := maps.Clone(a.rights["api"])
			without["data"] = slices.DeleteFunc(slices.Clone(without["data"]), func(s string) bool { return s == action })
			base := a.run(t, "api", newGate("api", without, a.cosmos.HTTPClient()))
			call(t, wanted, base, `{"firstName":"A","lastName":"B","email":"a@contoso.com","companyName":"C"}`, http.StatusInternalServerError)
		})
	}
}
