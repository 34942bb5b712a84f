package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/httpapi"
)

// TestDrain stops a server while a request is held in the store. The request completes if
// the store is released in time; otherwise it is aborted.
func TestDrain(t *testing.T) {
	for name, release := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDrain(t, release) })
		})
	}
}

func testDrain(t *testing.T, release bool) {
	memory := newMemory()
	memory.hold = make(chan struct{})
	m := mediator.New()
	if err := errors.Join(
		contacts.RegisterCommands(m, contacts.CommandPorts{Work: memory, IDs: uuid.New, Now: clock}),
		contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: memoryReader{memory}}),
	); err != nil {
		t.Fatal(err)
	}
	server, err := newServer(m, &httpapi.Options{DrainTimeout: 10 * time.Second, RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	network := pipenet.New()
	listener, err := network.Listen("api.test:80")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()

	transport := &http.Transport{DialContext: network.DialContext, DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	statuses := make(chan int, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test/api/contacts", strings.NewReader(jane))
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err != nil {
			statuses <- 0
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		statuses <- response.StatusCode
	}()
	synctest.Wait() // the request is held
	stop()
	synctest.Wait() // the listener is closed, the request still held
	if _, err := network.DialContext(t.Context(), "tcp", "api.test:80"); err == nil {
		t.Error("a stopping server accepts connections")
	}
	select {
	case err := <-ended:
		t.Fatalf("Run returned %v while a request was held", err)
	default:
	}
	if release {
		time.Sleep(9 * time.Second) // virtual
		close(memory.hold)
		if status := <-statuses; status != http.StatusCreated {
			t.Errorf("the held request ended with %d", status)
		}
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		return
	}
	started := time.Now()
	err = <-ended
	if err == nil || !strings.Contains(err.Error(), "aborted after 10s") || time.Since(started) != 10*time.Second {
		t.Errorf("Run returned %v after %v", err, time.Since(started))
	}
	if status := <-statuses; status != 0 {
		t.Errorf("an aborted request ended with %d", status)
	}
	close(memory.hold)
}

func TestRunReportsListenerFailure(t *testing.T) {
	server, err := newServer(mediator.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(nil).Listener
	_ = listener.Close()
	if err := server.Run(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Run returned %v", err)
	}
}

func TestProbes(t *testing.T) {
	up := errors.New("no lease store yet")
	ops := httpapi.NewOps(&httpapi.OpsOptions{Ready: func(context.Context) error { return up }})
	probe := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		ops.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Code, answer.Body.String()
	}
	expect := func(path string, status int, part string) {
		t.Helper()
		if got, body := probe(path); got != status || !strings.Contains(body, part) {
			t.Errorf("%s: %d %s, want %d %s", path, got, body, status, part)
		}
	}
	expect("/livez", 200, `"ok"`)
	expect("/readyz", 503, "no lease store yet")
	up = nil
	expect("/readyz", 200, `"ok"`)
	ops.Drain()
	expect("/readyz", 503, "stopping")
	expect("/livez", 200, `"ok"`)
	expect("/metrics", 404, "")
}
