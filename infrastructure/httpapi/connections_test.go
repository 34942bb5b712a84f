package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
)

// counted counts the authenticated requests.
type counted struct {
	auth.Authenticator
	requests atomic.Int64
}

func (c *counted) Authenticate(ctx context.Context, r *http.Request) (auth.Principal, error) {
	c.requests.Add(1)
	return c.Authenticator.Authenticate(ctx, r)
}

// dial opens a connection to the server that ends with the test.
func (a *api) dial() net.Conn {
	a.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// awaitEntered waits until the application has begun to handle a request.
func (a *api) awaitEntered() {
	a.t.Helper()
	select {
	case <-a.memory.entered:
	case <-time.After(time.Minute):
		a.t.Fatal("no request is handled within a minute")
	}
}

// One caller, within its rate, sends many bodies that never end. Another caller is served
// normally.
func TestSlowBodiesDoNotUseUpCapacity(t *testing.T) {
	const places, slow = 4, 40
	callers := &counted{Authenticator: apiKeys(t)}
	a := start(t, &httpapi.Options{Auth: callers, MaxInFlight: places, RateLimit: -1})
	path := a.do(http.MethodPost, "/api/contacts", jane, "x-api-key", "wkey").header.Get("Location")
	callers.requests.Store(0)
	for i := range slow {
		method, target, mediaType := "POST", "/api/contacts", "application/json"
		if i%2 == 0 {
			method, target, mediaType = "PATCH", path, "application/merge-patch+json"
		}
		length := []string{"Content-Length: 60000", "Transfer-Encoding: chunked"}[i%4/2]
		_, _ = fmt.Fprintf(a.dial(), "%s %s HTTP/1.1\r\nHost: localhost\r\nx-api-key: wkey\r\nContent-Type: %s\r\n%s\r\n\r\n1\r\n{", method, target, mediaType, length)
	}
	for deadline := time.Now().Add(time.Minute); callers.requests.Load() < slow; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the slow requests do not arrive")
		}
	}
	for range 2 * places {
		if got := a.do(http.MethodGet, path, "", "x-api-key", "rkey"); got.status != 200 {
			t.Errorf("another caller's read: %d %s", got.status, got.body)
		}
		if got := a.do(http.MethodPost, path+"/update-email", `{"email":null}`, "x-api-key", "wkey"); got.status != 204 {
			t.Errorf("a change: %d %s", got.status, got.body)
		}
	}
}

// ask sends a request on conn and reports whether it was answered.
func ask(conn net.Conn) bool {
	if _, err := io.WriteString(conn, "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return false
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Body.Close() == nil && response.StatusCode == http.StatusNotFound
}

// At the limit the longest idle connection is closed, and the new one is served.
func TestIdleConnectionsAreDisplaced(t *testing.T) {
	const limit = 5
	a := start(t, &httpapi.Options{MaxConnections: limit})
	var idle []net.Conn
	for i := range 3 * limit {
		conn := a.dial()
		if !ask(conn) {
			t.Fatalf("connection %d is not served", i)
		}
		idle = append(idle, conn)
	}
	kept := 0
	for _, conn := range idle {
		if ask(conn) {
			kept++
		}
	}
	if newest := idle[len(idle)-1]; kept != limit || !ask(newest) {
		t.Errorf("%d of %d connections are kept with a limit of %d", kept, len(idle), limit)
	}
}

// An idle connection of a caller outlasts any number of connections without one, although all have
// one address.
func TestConnectionOfACallerIsNotDisplacedByAnonymousOnes(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t), MaxConnections: 4})
	conn := a.dial()
	for range 2 {
		_, _ = io.WriteString(conn, "GET /api/contacts HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: rkey\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("the connection of a caller: %v", err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		for range 20 {
			if !ask(a.dial()) {
				t.Fatal("a new connection is not served")
			}
		}
	}
}

// Connections that never send a request are displaced like idle ones.
func TestSilentConnectionsAreDisplaced(t *testing.T) {
	a := start(t, &httpapi.Options{MaxConnections: 3})
	for range 30 {
		a.dial()
	}
	if !ask(a.dial()) {
		t.Error("thirty silent connections block a request")
	}
}

// If all connections have a request, a new one is closed. A later one is accepted again.
func TestBusyConnectionsAreNotDisplaced(t *testing.T) {
	const limit = 3
	a := start(t, &httpapi.Options{MaxConnections: limit})
	hold, entered := make(chan struct{}), make(chan struct{}, limit)
	a.memory.mu.Lock()
	a.memory.hold, a.memory.entered = hold, entered
	a.memory.mu.Unlock()
	var busy []net.Conn
	for range limit {
		conn := a.dial()
		_, _ = io.WriteString(conn, "GET /api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		a.awaitEntered()
		busy = append(busy, conn)
	}
	if ask(a.dial()) {
		t.Error("a connection beyond the limit is served")
	}
	close(hold)
	for _, conn := range busy {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusNotFound {
			t.Fatalf("a busy connection was closed: %v", err)
		}
		_ = response.Body.Close()
		_ = conn.Close()
	}
	for deadline := time.Now().Add(time.Minute); !ask(a.dial()); {
		if time.Now().After(deadline) {
			t.Fatal("a connection is refused after the requests have ended")
		}
	}
}

// A client sends its request, closes its sending side (shutdown(SHUT_WR), like nc -N and
// some proxies), and still reads. net/http then cancels the request, so the answer must not
// report success.
func TestHalfClosedConnectionGetsUnknownOutcome(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	a.memory.mu.Lock()
	a.memory.hold, a.memory.entered = make(chan struct{}), make(chan struct{}, 1)
	a.memory.mu.Unlock()
	for _, tc := range []struct{ method, path, mediaType, body string }{
		{"POST", "/api/contacts", "application/json", jane},
		{"POST", path + "/update-name", "application/json", `{"firstName":"X","lastName":"Y"}`},
		{"POST", path + "/update-description", "application/json", `{"description":"new"}`},
		{"POST", path + "/update-email", "application/json", `{"email":null}`},
		{"POST", path + "/update-company", "application/json", `{"companyName":"X"}`},
		{"PATCH", path, "application/merge-patch+json", `{"email":null}`},
		{"DELETE", path, "", ""},
		{"GET", path, "", ""},
		{"GET", "/api/contacts", "", ""},
	} {
		t.Run(tc.method+" "+strings.TrimPrefix(tc.path, path), func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", tc.method, tc.path, tc.mediaType, len(tc.body), tc.body)
			a.awaitEntered()
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			defer func() { _ = response.Body.Close() }()
			body, _ := io.ReadAll(response.Body)
			got := answer{response.StatusCode, response.Header, string(body)}
			if p := problemOf(t, got); got.status != http.StatusServiceUnavailable || p.Code != "client_closed" || got.header.Get("Retry-After") == "" {
				t.Errorf("answered %d %v %s", got.status, got.header, got.body)
			}
		})
	}
	if a.memory.writes != 1 {
		t.Errorf("%d writes; want that of the first creation only", a.memory.writes)
	}
	if log := a.logs.String(); strings.Count(log, `"level":"INFO","msg":"request"`) != strings.Count(log, `"msg":"request"`) || !strings.Contains(log, `"status":499`) {
		t.Errorf("the log has it as a failure of the service:\n%s", log)
	}
}
