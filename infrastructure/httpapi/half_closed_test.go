package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

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
			<-a.memory.entered // it is being handled
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
