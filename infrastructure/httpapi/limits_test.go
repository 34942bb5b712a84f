package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/mediator"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/httpapi"
)

// TestHostileConnectionsAreClosed sends raw bytes that no HTTP client sends.
func TestHostileConnectionsAreClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		send  string
		want  string        // beginning of the answer, "" for none
		until time.Duration // after this the connection must be closed, 0: at once
	}{
		"headers over 16 KB":     {send: "GET /api/contacts HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 24<<10) + "\r\n\r\n", want: "HTTP/1.1 431"},
		"no host":                {send: "GET /api/contacts HTTP/1.1\r\n\r\n", want: "HTTP/1.1 400"},
		"no request":             {send: "\x16\x03\x01\x00\x00\r\n\r\n", want: "HTTP/1.1 400"},
		"two lengths":            {send: "POST /api/contacts HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", want: "HTTP/1.1 400"},
		"length and chunks":      {send: "POST /api/contacts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", want: "HTTP/1.1 400", until: 120 * time.Second},
		"headers that never end": {send: "GET /api/contacts HTTP/1.1\r\nHost: a\r\nX: y", until: 5 * time.Second},
		"a body that never ends": {send: "POST /api/contacts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", want: "HTTP/1.1 400", until: 15 * time.Second},
		"an idle connection":     {send: "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", want: "HTTP/1.1 404", until: 120 * time.Second},
		"chunks over 64 KB":      {send: "POST /api/contacts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(17, 4<<10), want: "HTTP/1.1 413"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, stop := dialServer(t)
				defer stop()
				started := time.Now()
				go func() { _, _ = io.WriteString(conn, tc.send) }() // may be cut off
				answer := bufio.NewReader(conn)
				line, _ := answer.ReadString('\n')
				if !strings.HasPrefix(line, tc.want) || tc.want == "" && line != "" {
					t.Errorf("answered %q, want %q", line, tc.want)
				}
				_, _ = io.Copy(io.Discard, answer) // until the server closes
				if took := time.Since(started); took < tc.until || took > tc.until+time.Second {
					t.Errorf("closed after %v, want %v", took, tc.until)
				}
			})
		})
	}
}

// dialServer runs a server without application in a bubble.
func dialServer(t *testing.T) (conn net.Conn, stop func()) {
	t.Helper()
	server, err := newServer(mediator.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	network := pipenet.New()
	listener, err := network.Listen("api.test:80")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()
	conn, err = network.DialContext(t.Context(), "tcp", "api.test:80")
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		_ = conn.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func chunks(count, size int) string {
	var b strings.Builder
	for range count {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", size, strings.Repeat("x", size))
	}
	return b.String() + "0\r\n\r\n"
}

// A web page whose name was pointed to this machine reaches neither API nor ops listener. A
// public listener serves any host, because the ingress in front of it checks names.
func TestLoopbackListenerRefusesForeignHosts(t *testing.T) {
	t.Parallel()
	server, err := newServer(mediator.New(), &httpapi.Options{PublicURL: "https://contoso.example", AllowedHosts: []string{"box.test:99"}})
	if err != nil {
		t.Fatal(err)
	}
	ops := httpapi.NewOps(&httpapi.OpsOptions{AllowedHosts: []string{"box.test"}})
	for name, one := range map[string]struct {
		run        func(ctx context.Context, l net.Listener) error
		bind, path string
		answers    map[string]int // to each host
	}{
		"api":        {server.Run, "127.0.0.1:0", "/docs", map[string]int{"evil.example": 421, "": 200, "LOCALHOST": 200, "a.localhost:1": 200, "[::1]:8080": 200, "127.9.9.9": 200, "contoso.example": 200, "box.test": 200, "127.0.0.1.evil.example": 421, "evillocalhost": 421, "192.0.2.1": 421}},
		"public api": {server.Run, "0.0.0.0:0", "/docs", map[string]int{"evil.example": 200}},
		"ops":        {ops.Run, "127.0.0.1:0", "/livez", map[string]int{"evil.example": 421, "localhost:80": 200, "box.test": 200, "contoso.example": 421}},
	} {
		listener, err := net.Listen("tcp", one.bind)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- one.run(ctx, listener) }()
		for host, want := range one.answers {
			if got, body := getAs(t, "127.0.0.1:"+port, host, one.path); got != want || want == 421 && !strings.Contains(body, "FEEDBOX_ALLOWED_HOSTS") {
				t.Errorf("%s answered %d to the host %q, want %d: %.200s", name, got, host, want, body)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// getAs sends the Host header as given, also an empty one.
func getAs(t *testing.T, address, host, path string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// A second line may name a coding that the first does not.
func TestEveryContentEncodingIsChecked(t *testing.T) {
	a := start(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/api/contacts", strings.NewReader(jane))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "gzip"}}
	reply, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("answered %d", reply.StatusCode)
	}
}
