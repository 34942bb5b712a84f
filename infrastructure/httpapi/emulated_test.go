package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/store/cosmos"
	contactdocs "feedbox/infrastructure/store/cosmos/contacts"
	contactkind "feedbox/infrastructure/store/document/contacts"
)

// startEmulated runs a server with the real application, adapter and SDK, and the Cosmos DB
// emulator. The audit trail is on.
func startEmulated(t *testing.T, options *httpapi.Options) (*api, *cosmosemu.Server) {
	t.Helper()
	m, emulator := emulated(t, uuid.New)
	if options == nil {
		options = &httpapi.Options{}
	}
	options.Audit = true
	a := startOver(t, m, options)
	a.session = &session{}
	return a, emulator
}

// emulated returns the application on an emulator. New contacts and events get their ids
// from ids.
func emulated(t *testing.T, ids command.IDs) (*mediator.Mediator, *cosmosemu.Server) {
	t.Helper()
	return emulatedIn(t, &cosmosemu.Options{Partitions: 2, StaleReads: time.Minute}, ids)
}

func emulatedIn(t *testing.T, o *cosmosemu.Options, ids command.IDs) (*mediator.Mediator, *cosmosemu.Server) {
	t.Helper()
	emulator := cosmosemu.StartT(t, o)
	if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.HTTPClient().CloseIdleConnections)
	client, err := cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: emulator.HTTPClient()},
	})
	if err != nil {
		t.Fatal(err)
	}
	container, err := client.NewContainer("contacts", "data")
	if err != nil {
		t.Fatal(err)
	}
	m := mediator.New()
	contacts.SubscribeEvents(m)
	work, workErr := cosmos.NewUnitsOfWork(container, contactkind.Kind(), m, nil)
	reader, readerErr := contactdocs.NewReader(container)
	audit, auditErr := cosmos.NewAuditReader(container)
	if err := errors.Join(
		workErr, readerErr, auditErr,
		contacts.RegisterCommands(m, contacts.CommandPorts{Work: work, IDs: ids, Now: time.Now, Audit: true}),
		contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: reader, Audit: audit}),
	); err != nil {
		t.Fatal(err)
	}
	return m, emulator
}

// TestRoutesOverTheEmulator calls every route with the real store adapter.
func TestRoutesOverTheEmulator(t *testing.T) {
	a, _ := startEmulated(t, nil)
	created := a.do(http.MethodPost, "/api/contacts", jane)
	if created.status != 201 {
		t.Fatalf("%d %s", created.status, created.body)
	}
	path, etag := created.header.Get("Location"), created.header.Get("ETag")
	if etag == "" || created.header.Get("x-ms-session-token") == "" {
		t.Fatalf("headers %v", created.header)
	}
	step := func(method, target, body string, status int, headers ...string) answer {
		t.Helper()
		got := a.do(method, target, body, headers...)
		if got.status != status {
			t.Fatalf("%s %s: %d %s, want %d", method, target, got.status, got.body, status)
		}
		return got
	}
	step("GET", path, "", 200)
	step("GET", path, "", 304, "If-None-Match", etag)
	step("POST", path+"/update-name", `{"firstName":"Janet","lastName":"Roe"}`, 204, "If-Match", etag)
	step("POST", path+"/update-name", `{"firstName":"Late","lastName":"Comer"}`, 412, "If-Match", etag)
	step("POST", path+"/update-description", `{"description":"other"}`, 204)
	step("POST", path+"/update-email", `{"email":null}`, 204)
	updated := step("POST", path+"/update-company", `{"companyName":"Fabrikam","city":"Bern"}`, 204)
	same := step("POST", path+"/update-company", `{"companyName":"Fabrikam","city":"Bern"}`, 204)
	if updated.header.Get("ETag") != same.header.Get("ETag") {
		t.Error("a request that changed nothing returned a new ETag")
	}
	read := step("GET", path, "", 200)
	for _, part := range []string{`"Janet"`, `"other"`, `"email":null`, `"Bern"`, `"version":5`} {
		if !strings.Contains(read.body, part) {
			t.Errorf("%s is missing from %s", part, read.body)
		}
	}
	if list := step("GET", "/api/contacts", "", 200); !strings.Contains(list.body, `"fullName":"Janet Roe"`) || !strings.Contains(list.body, strings.ReplaceAll(updated.header.Get("ETag"), `"`, `\"`)) {
		t.Errorf("list: %s", list.body)
	}
	step("DELETE", path, "", 204)
	step("DELETE", path, "", 204)
	step("GET", path, "", 404)
	step("POST", path+"/update-email", `{"email":null}`, 404)
	step("GET", path, "", 400, "x-ms-session-token", a.session.get(), "x-ms-session-token", a.session.get())
	for _, target := range []string{path, "/api/contacts"} {
		if got := a.do("GET", target, "", "x-ms-session-token", "nonsense"); got.status != 400 {
			t.Errorf("GET %s with a broken session token: %d %s", target, got.status, got.body)
		}
	}
}

// TestPagesOverTheEmulator lists contacts spread over physical partitions.
func TestPagesOverTheEmulator(t *testing.T) {
	a, _ := startEmulated(t, nil)
	const count = 25
	for range count {
		a.create()
	}
	seen := map[string]bool{}
	target := "/api/contacts?pageSize=7"
	for pages := 0; target != ""; pages++ {
		got := a.do(http.MethodGet, target, "")
		if got.status != 200 || pages > count {
			t.Fatalf("page %d: %d %s", pages, got.status, got.body)
		}
		page := pageOf(t, got)
		for _, item := range page.Items {
			if seen[item.ID] {
				t.Errorf("%s is listed twice", item.ID)
			}
			seen[item.ID] = true
		}
		target = strings.TrimPrefix(page.NextLink, a.url)
	}
	if len(seen) != count {
		t.Errorf("%d contacts are listed, want %d", len(seen), count)
	}
}

// The changes of concurrent writers with If-Match are applied exactly if they were accepted.
func TestConditionalWritersLoseNoChange(t *testing.T) {
	a, _ := startEmulated(t, nil)
	path, _ := a.create()
	const writers, rounds = 64, 4
	var accepted, refused atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for round := range rounds {
				etag := a.do(http.MethodGet, path, "").header.Get("ETag")
				got := a.do(http.MethodPost, path+"/update-name", fmt.Sprintf(`{"firstName":"Writer %d","lastName":"Round %d"}`, w, round), "If-Match", etag)
				switch got.status {
				case 204:
					accepted.Add(1)
				case 412:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	if got := a.do(http.MethodGet, path, ""); !strings.Contains(got.body, fmt.Sprintf(`"version":%d}`, accepted.Load()+1)) {
		t.Errorf("%d changes were accepted, %d refused, the contact is %s", accepted.Load(), refused.Load(), got.body)
	}
	t.Logf("%d writers: %d changes accepted, %d refused", writers, accepted.Load(), refused.Load())
}

// Fifty concurrent writers change one contact. None gets 412 for a precondition that it did
// not send.
func TestUnconditionalWritersAreNotRefused(t *testing.T) {
	a, _ := startEmulated(t, nil)
	path, _ := a.create()
	const writers = 50
	begin := make(chan struct{})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			<-begin
			if got := a.do(http.MethodPost, path+"/update-name", fmt.Sprintf(`{"firstName":"Writer %d","lastName":"Doe"}`, w)); got.status != 204 {
				t.Errorf("writer %d: %d %s", w, got.status, got.body)
			}
		})
	}
	close(begin)
	all.Wait()
	if got := a.do(http.MethodGet, path, ""); !strings.Contains(got.body, fmt.Sprintf(`"version":%d}`, writers+1)) {
		t.Errorf("the contact is %s", got.body)
	}
}

// Without a session token the store may serve old states. A client that sends its session
// token always reads its own writes.
func TestSessionTokenReadsOwnWrites(t *testing.T) {
	a, _ := startEmulated(t, nil)
	a.session = nil
	stale := 0
	for range 20 {
		created := a.do(http.MethodPost, "/api/contacts", jane)
		path, token := created.header.Get("Location"), created.header.Get("x-ms-session-token")
		if got := a.do(http.MethodGet, path, ""); got.status == 404 {
			stale++
		}
		updated := a.do(http.MethodPost, path+"/update-email", `{"email":null}`, "x-ms-session-token", token)
		token = updated.header.Get("x-ms-session-token")
		if got := a.do(http.MethodGet, path, "", "x-ms-session-token", token); got.status != 200 || got.header.Get("ETag") != updated.header.Get("ETag") {
			t.Errorf("with the token: %d %s", got.status, got.body)
		}
		if got := a.do(http.MethodGet, "/api/contacts?pageSize=100", "", "x-ms-session-token", token); !strings.Contains(got.body, path[len("/api/contacts/"):]) {
			t.Errorf("the listing lacks the contact: %s", got.body)
		}
	}
	if stale == 0 {
		t.Error("no read without the token was stale, so the test proves nothing")
	}
}
