package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
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
