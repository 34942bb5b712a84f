package attack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Anonymous connections that request documents and do not read the answers.
func TestSlowReadersLockNoCallerOut(t *testing.T) {
	s := start(t, "api", fmt.Sprint("FEEDBOX_API_MAX_CONNECTIONS=", sized(60, 2000)))
	s.serves("calls before the attack", sized(20, 3000), func() bool { return s.get("/api/contacts", "ann") == http.StatusOK })
	script := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 60)
	s.attack(sized(120, 2000), 0, script)
	s.serves("calls among slow readers", sized(100, 3000), func() bool { return s.get("/api/contacts", "ann") == http.StatusOK })
}

// Two callers within their rates that send a byte of each body.
func TestSlowBodiesLockNoCallerOut(t *testing.T) {
	s := start(t, "api", fmt.Sprint("FEEDBOX_API_MAX_CONNECTIONS=", sized(60, 2000)))
	body := func(name string) string {
		return "POST /api/contacts HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: " + name + "-key\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	}
	s.serves("calls before the attack", sized(20, 3000), func() bool { return s.get("/api/contacts", "ann") == http.StatusOK })
	s.attack(sized(120, 3000), 5*time.Millisecond, body("bea"), body("eve"))
	s.serves("calls among slow bodies", sized(100, 3000), func() bool { return s.get("/api/contacts", "ann") == http.StatusOK })
}

// connections is the limit of the operations page. Earlier versions do not have the variable.
func connections() []string {
	if *full {
		return nil
	}
	return []string{"FEEDBOX_CONSOLE_MAX_CONNECTIONS=64"}
}

// One reader opens as many live views as it can.
func TestOneReadersStreamsLeaveRoomForOthers(t *testing.T) {
	s := start(t, "console", connections()...)
	s.serves("pages before the attack", sized(20, 3000), func() bool { return s.get("/acts", "bea") == http.StatusOK })
	view := func() bool { return s.get("/", "bea", "Accept", "text/event-stream") == http.StatusOK }
	s.serves("live views before the attack", sized(20, 3000), view)
	s.attack(sized(100, 700), 0, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ann-key\r\nAccept: text/event-stream\r\n\r\n")
	s.serves("live views of another reader", sized(100, 3000), view)
	s.serves("pages of another reader", sized(100, 3000), func() bool { return s.get("/acts", "bea") == http.StatusOK })
}

// Anonymous connections that request the pages for sign-in and do not read them.
func TestAnonymousConnectionsLockNoReaderOut(t *testing.T) {
	s := start(t, "console", connections()...)
	script := strings.Repeat("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"+"GET /assets/page/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n", 60)
	call := func() bool { return s.get("/acts", "bea") == http.StatusOK }
	s.serves("pages before the attack", sized(20, 3000), call)
	s.attack(sized(200, 4000), 0, script)
	s.serves("pages among anonymous connections", sized(100, 3000), call)
}

// A client guesses credentials. A person with the same address still signs in.
func TestGuessesKeepNoPersonOut(t *testing.T) {
	s := start(t, "console", connections()...)
	token := s.token()
	var refused, wrong, other atomic.Int64
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	var guessers sync.WaitGroup
	began := time.Now()
	for worker := range 4 {
		guessers.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := range sized(100, 2000) {
				switch s.signIn(ctx, client, token, fmt.Sprintf("guess-%d-%d", worker, i)) {
				case http.StatusTooManyRequests:
					refused.Add(1)
				case http.StatusUnauthorized:
					wrong.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	s.serves("sign-ins among guesses", sized(50, 300), func() bool {
		return s.signIn(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, token, "bea-key") == http.StatusSeeOther
	})
	guessers.Wait()
	lines := strings.Count(s.process.Output(), "wrong credential")
	t.Logf("%d guesses with 401, %d with 429, %d otherwise in %v; %d lines in the log", wrong.Load(), refused.Load(), other.Load(), time.Since(began).Round(time.Millisecond), lines)
	if refused.Load() == 0 || lines == 0 {
		t.Error("guesses have neither a rate nor a line in the log")
	}
}

var hidden = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token returns the token of the form for sign-in.
func (s *target) token() string {
	s.t.Helper()
	reply, err := http.Get("http://" + s.address + "/")
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	found := hidden.FindSubmatch(body)
	if found == nil {
		s.t.Fatalf("no form: %s", body)
	}
	return string(found[1])
}

// signIn returns the status of the answer, 0 without one.
func (s *target) signIn(ctx context.Context, client *http.Client, token, credential string) int {
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	form := url.Values{"token": {token}, "credential": {credential}, "back": {"/"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	reply, err := client.Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	return reply.StatusCode
}
