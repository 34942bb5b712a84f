package wiring

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/process/config"
)

// cutStore loses all requests while it is down.
type cutStore struct {
	next *http.Client
	down atomic.Bool
}

func (s *cutStore) Do(r *http.Request) (*http.Response, error) {
	if s.down.Load() {
		return nil, errors.New("no route to the store")
	}
	return s.next.Do(r)
}

// newConsole returns a page on an emulator, on sockets of its own.
func newConsole(t *testing.T, o PageOptions, environ ...string) (*Page, Sockets, *cutStore) {
	t.Helper()
	emulator := cosmosemu.StartT(t, nil)
	for id, key := range map[string]string{"data": "/partitionKey", "leases": "/id", "parked": "/partitionKey"} {
		if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: id, PartitionKey: []string{key}, DefaultTTL: -1}); err != nil {
			t.Fatal(err)
		}
	}
	environ = append(environ, "FEEDBOX_COSMOS_ENDPOINT="+emulator.Endpoint(), "FEEDBOX_COSMOS_KEY="+emulator.Key())
	cfg, err := config.LoadConsole(environ)
	if err != nil {
		t.Fatal(err)
	}
	relay, err := config.LoadRelay(environ)
	if err := config.WithoutBroker(err); err != nil {
		t.Fatal(err)
	}
	sockets, err := Listen(t.Context(), "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sockets.Close() }) // already closed if the page ran
	store := &cutStore{next: emulator.HTTPClient()}
	page, err := NewPage(cfg, relay, Params{Sockets: sockets, Log: slog.New(slog.DiscardHandler), CosmosTransport: store}, o)
	if err != nil {
		t.Fatal(err)
	}
	return page, sockets, store
}

// The page shows an outage, so it stays ready during one; the body of /readyz has the state
// of the store. A stop ends the readiness before the page, and the page before the probes.
func TestConsoleStaysReadyDuringAnOutageAndReportsTheStore(t *testing.T) {
	console, sockets, store := newConsole(t, PageOptions{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- console.Run(ctx, sockets.API) }()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	get := func(l net.Listener, path string) (int, []byte) {
		response, err := client.Get("http://" + l.Addr().String() + path)
		if err != nil {
			return 0, fmt.Append(nil, err)
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, body
	}
	// probe opens the page too, because the store is read only while it is open.
	probe := func(open bool) (int, httpapi.Dependency) {
		if open {
			get(sockets.API, "/ranges")
		}
		status, body := get(sockets.Ops, "/readyz")
		var answer struct{ Dependencies map[string]httpapi.Dependency }
		_ = json.Unmarshal(body, &answer)
		return status, answer.Dependencies["cosmos"]
	}
	if status, body := get(sockets.Ops, "/livez"); status != http.StatusOK {
		t.Errorf("/livez: %d %s", status, body)
	}
	if status, cosmos := probe(false); status != http.StatusOK || cosmos.Status != "unknown" {
		t.Errorf("before the first read: %d, %+v", status, cosmos)
	}
	for _, one := range []struct {
		down   bool
		status string
	}{{false, "ok"}, {true, "failing"}, {false, "ok"}} {
		store.down.Store(one.down)
		until(t, one.status, func() bool {
			status, cosmos := probe(true)
			if status != http.StatusOK {
				t.Fatalf("/readyz is %d with the store down: %v", status, one.down)
			}
			return cosmos.Status == one.status && one.down == (cosmos.Error != "")
		})
	}

	// The page accepts connections in order. A stop waits up to 5 s for one without a request.
	open, err := net.Dial("tcp", sockets.API.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if status, _ := get(sockets.API, "/assets/page/page.css"); status == 0 {
		t.Fatal("the page does not answer")
	}
	stop()
	until(t, "not ready while it stops", func() bool { status, _ := probe(false); return status == http.StatusServiceUnavailable })
	_ = open.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// access returns what a credential permits on the page: "refused", "none", "reads" or "acts".
func access(t *testing.T, console *Page, header, credential string) string {
	t.Helper()
	get := func(path string) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set(header, credential)
		w := httptest.NewRecorder()
		console.page.ServeHTTP(w, r)
		return w.Code
	}
	read, act := get("/acts"), get("/ranges/pause?lease=all")
	switch {
	case read == http.StatusUnauthorized && act == http.StatusUnauthorized:
		return "refused"
	case read == http.StatusForbidden && act == http.StatusForbidden:
		return "none"
	case read == http.StatusOK && act == http.StatusForbidden:
		return "reads"
	case read == http.StatusOK && act != http.StatusUnauthorized:
		return "acts"
	}
	t.Fatalf("%s %q: reading is answered with %d, acting with %d", header, credential, read, act)
	return ""
}

// A writer of the API is not an operator, and an operator acts only with write access.
func TestOperatorsHaveAPIKeysOfTheirOwn(t *testing.T) {
	hash := func(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }
	environ := []string{
		"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=shop:write:" + hash("of-the-api"),
		"FEEDBOX_CONSOLE_API_KEYS=bob:read:" + hash("reader") + ",ann:write:" + hash("actor"),
	}
	for actions, wanted := range map[bool]map[string]string{
		true:  {"of-the-api": "refused", "reader": "reads", "actor": "acts"},
		false: {"of-the-api": "refused", "reader": "reads", "actor": "reads"},
	} {
		console, _, _ := newConsole(t, PageOptions{Actions: actions}, environ...)
		t.Cleanup(console.page.Close)
		for key, want := range wanted {
			if got := access(t, console, auth.HeaderAPIKey, key); got != want {
				t.Errorf("key %s, actions %v: %s, want %s", key, actions, got, want)
			}
		}
	}
}

// With Entra ID, an operator has the app role and delegated the scope of the same name. An
// application has the app role.
func TestOperatorsOfEntraHaveAppRoles(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.RS256}}}
	server := httptest.NewServer(issuer)
	t.Cleanup(server.Close)
	issuer.SetIssuer(server.URL)
	console, _, _ := newConsole(t, PageOptions{Actions: true}, "FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_ISSUER="+server.URL, "FEEDBOX_AUTH_AUDIENCE=feedbox")
	t.Cleanup(console.page.Close)
	const both = "operations.read operations.write"
	for name, tc := range map[string]struct{ scopes, roles, want string }{
		"writer of the API":       {"contacts.read contacts.write", "contacts.read contacts.write", "none"},
		"user without a role":     {both, "", "none"},
		"reader":                  {both, "operations.read", "reads"},
		"operator":                {both, both, "acts"},
		"operator, reading scope": {"operations.read", both, "reads"},
		"reading application":     {"", "operations.read", "reads"},
		"acting application":      {"", both, "acts"},
	} {
		claims := map[string]any{"iss": server.URL, "aud": "feedbox", "sub": name, "exp": time.Now().Add(time.Hour).Unix(), "roles": strings.Fields(tc.roles)}
		if tc.scopes != "" {
			claims["scp"] = tc.scopes
		} else {
			claims["idtyp"] = "app"
		}
		text, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		if got := access(t, console, "Authorization", "Bearer "+oidctest.SignIDToken(key, "k", oidc.RS256, string(text))); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
