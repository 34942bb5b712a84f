package cosmosemu_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is a reply read into memory.
type answer struct {
	StatusCode int
	Header     http.Header
	Body       string
}

// send sends a signed request without azcosmos, for requests that azcosmos never sends.
func send(t *testing.T, srv *cosmosemu.Server, method, path, body string, headers map[string]string) answer {
	t.Helper()
	return sendTo(t, srv, srv.Endpoint(), method, path, body, headers)
}

// statusOf returns the status and the sub-status of an answer.
func statusOf(r answer) string {
	return strconv.Itoa(r.StatusCode) + " " + r.Header.Get("x-ms-substatus")
}

// sendTo sends a signed request to one of the server's endpoints.
func sendTo(t *testing.T, srv *cosmosemu.Server, endpoint, method, path, body string, headers map[string]string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	segments := strings.Split(path, "/")
	kind, link := segments[len(segments)-1], strings.Join(segments[:len(segments)-1], "/")
	if len(segments)%2 == 0 && path != "" {
		kind, link = segments[len(segments)-2], path
	}
	date := strings.ToLower(time.Now().UTC().Format(http.TimeFormat))
	secret, err := base64.StdEncoding.DecodeString(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.ToLower(method) + "\n" + kind + "\n" + link + "\n" + date + "\n\n"))
	req.Header.Set("x-ms-date", date)
	req.Header.Set("authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := srv.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// A client that never finishes a head or a body holds its connection and memory for a bounded time.
func TestUnfinishedRequestIsClosed(t *testing.T) {
	// An AAD token, because any well-formed one is accepted.
	const post = "POST /dbs/db/colls/c/docs HTTP/1.1\r\nHost: a\r\nAuthorization: type=aad&ver=1.0&sig=e30.e30.x\r\n"
	for name, c := range map[string]struct {
		send, want string
		until      time.Duration
	}{
		"a head that never ends":      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 32<<10), "", 10 * time.Second},
		"a head that is too large":    {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 900<<10), "HTTP/1.1 431", 0},
		"a body that never ends":      {post + "Content-Length: 2000000\r\n\r\n{", "HTTP/1.1 400", 30 * time.Second},
		"chunks that never end":       {post + "Transfer-Encoding: chunked\r\n\r\n1\r\n{", "HTTP/1.1 400", 30 * time.Second},
		"a refused body without end":  {strings.Replace(post, "Authorization", "X", 1) + "Content-Length: 2000000\r\n\r\n{", "HTTP/1.1 401", 10 * time.Second},
		"a body that is far too long": {post + "Content-Length: 2000000000\r\n\r\n{", "HTTP/1.1 413", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := pipenet.New()
				srv, _ := start(t, &cosmosemu.Options{Network: network})
				conn, err := network.DialContext(t.Context(), "tcp", srv.Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Hour))
				began := time.Now()
				go func() { _, _ = io.WriteString(conn, c.send) }()
				reply := bufio.NewReader(conn)
				line, _ := reply.ReadString('\n')
				_, err = io.Copy(io.Discard, reply)
				if took := time.Since(began); !strings.HasPrefix(line, c.want) || c.want == "" && line != "" || err != nil || took < c.until || took > c.until+time.Second {
					t.Errorf("answered %q and closed after %v (%v), want %q after %v", line, took, err, c.want, c.until)
				}
			})
		})
	}
}

// reachable is a network in memory that looks like TCP, which other processes reach.
type reachable struct{ net.Listener }

func (reachable) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} }

// A client that does not read its answer holds its connection for a bounded time.
func TestUnreadAnswerEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := pipenet.New()
		listener, err := network.Listen("cosmos:8081")
		if err != nil {
			t.Fatal(err)
		}
		srv, err := cosmosemu.Start(&cosmosemu.Options{Listener: reachable{listener}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		for wait, answered := range map[time.Duration]bool{29 * time.Second: true, 31 * time.Second: false} {
			conn, err := network.DialContext(t.Context(), "tcp", "cosmos:8081")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			time.Sleep(wait)
			if _, err := io.ReadFull(conn, make([]byte, 1)); (err == nil) != answered {
				t.Errorf("read after %v: %v", wait, err)
			}
			_ = conn.Close()
		}
	})
}

// A client that sends its whole request before it reads still gets the answer, not a reset.
func TestRefusalOfALargeBodyIsReadable(t *testing.T) {
	srv, _ := start(t, nil)
	for head, want := range map[string]int{
		"Authorization: type=aad&ver=1.0&sig=e30.e30.x\r\nContent-Length: 12000000\r\n":      http.StatusRequestEntityTooLarge,
		"Authorization: type=aad&ver=1.0&sig=e30.e30.x\r\nTransfer-Encoding: chunked\r\n":    http.StatusRequestEntityTooLarge,
		"Authorization: type%3Dmaster%26ver%3D1.0%26sig%3Dx\r\nContent-Length: 12000000\r\n": http.StatusUnauthorized,
	} {
		conn, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		body := strings.Repeat("x", 12_000_000)
		if strings.Contains(head, "chunked") {
			body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		}
		if _, err := io.WriteString(conn, "POST /dbs/db/colls/c/docs HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n"+body); err != nil {
			t.Errorf("%s: the body was cut off: %v", head, err)
		}
		reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || reply.StatusCode != want {
			t.Errorf("%s: %v, %v; want %d", head, reply, err, want)
		}
		_ = conn.Close()
	}
}
