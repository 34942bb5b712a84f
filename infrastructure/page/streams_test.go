package page_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/page"
)

// open opens a stream of the live view and reads its first content.
func (s *site) open(t *testing.T, client *http.Client, headers ...string) (status int, lines *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/ops/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reply.Body.Close() })
	lines = bufio.NewScanner(reply.Body)
	if reply.StatusCode == http.StatusOK {
		skip(lines, `id="h"`)
	}
	return reply.StatusCode, lines
}

// skip reads a stream up to a line with text, or to its end.
func skip(lines *bufio.Scanner, text string) {
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
}

func TestFormTokenBelongsToASession(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	ann, bea := s.signedIn(t, "ann"), s.signedIn(t, "bea")
	stamp := hidden.FindAllStringSubmatch(func() string { _, b := s.get(t, "/ops/set?to=5", auth.HeaderAPIKey, "ann-key"); return b }(), -1)[1][2]
	form := url.Values{"who": {"bea"}, "why": {"a test"}, "to": {"5"}, "stamp": {stamp}}
	for name, token := range map[string]string{"another session": s.tokenFor(t, ann), "no session": s.tokenFor(t, s.Client()), "another session of the person": s.tokenFor(t, s.signedIn(t, "bea"))} {
		form.Set("token", token)
		if status, body := s.as(t, bea, "/ops/set", form); status != http.StatusForbidden || !strings.Contains(body, "stale") {
			t.Errorf("token of %s: %d %s", name, status, body)
		}
	}
	form.Set("token", s.tokenFor(t, bea))
	if status, body := s.as(t, bea, "/ops/set", form); status != http.StatusOK || !strings.Contains(body, "it is five") {
		t.Errorf("own token: %d %s", status, body)
	}
}

func TestSignOutEndsTheStreamsOfTheSession(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	ann, other := s.signedIn(t, "ann"), s.signedIn(t, "ann")
	_, ended := s.open(t, ann)
	_, kept := s.open(t, other)
	if status, _ := s.as(t, ann, "/ops/sign-out", url.Values{"token": {s.tokenFor(t, ann)}}); status != http.StatusUnauthorized {
		t.Fatalf("sign-out leads to %d", status)
	}
	reload := false
	for ended.Scan() { // until the stream ends
		reload = reload || strings.Contains(ended.Text(), "event: process")
	}
	if !reload || ended.Err() != nil {
		t.Errorf("the browser is not asked to load the page again: %v", ended.Err())
	}
	s.count.Store(7)
	skip(kept, `<h1 id="h">7`)
	if kept.Err() != nil {
		t.Errorf("the stream of another session ended: %v", kept.Err())
	}
}

// A stream ends within a minute of the expiry of its credential, and not in an outage of the identity provider.
func TestReaderOfAStreamIsJudgedEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &people{}
		p, err := page.New(&page.Options{Auth: who, Sections: []page.Section{{
			Title: "Counter", Templates: fstest.MapFS{"counter.html": {Data: []byte(`<h1>0</h1>`)}},
			Views: []page.View{{Template: "counter.html", Every: time.Second, Data: func(*http.Request) (any, error) { return 0, nil }}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ended, stream := make(chan time.Time, 1), httptest.NewRecorder()
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set(auth.HeaderAPIKey, "ann-key")
			p.ServeHTTP(stream, r)
			ended <- time.Now()
		}()
		began := time.Now()
		time.Sleep(10*time.Minute + time.Second)
		who.down.Store(true) // the last judgement holds
		time.Sleep(10 * time.Minute)
		who.down.Store(false)
		select {
		case at := <-ended:
			t.Fatalf("the stream of a valid reader ended after %v", at.Sub(began))
		default:
		}
		who.revoked.Store("ann")
		time.Sleep(time.Minute)
		p.Close() // ends every stream
		if took := (<-ended).Sub(began); took != 21*time.Minute {
			t.Errorf("ended after %v, want 21 minutes", took)
		}
		// Otherwise the browser would open the stream again and again, and show no form for sign-in.
		if !strings.HasSuffix(stream.Body.String(), "\n\nevent: process\ndata: ended\n\n") {
			t.Errorf("the browser is not asked to load the page again: %q", stream.Body)
		}
	})
}

// After the first time, views that were opened together are rendered at different times.
func TestViewsOpenedTogetherAreRenderedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const views, seconds = 20, 10
		var mu sync.Mutex
		rendered := map[time.Time]int{}
		p, err := page.New(&page.Options{Auth: &people{}, Sections: []page.Section{{
			Title: "Counter", Templates: fstest.MapFS{"counter.html": {Data: []byte(`<h1>0</h1>`)}},
			Views: []page.View{{Template: "counter.html", Every: time.Second, Data: func(*http.Request) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				rendered[time.Now()]++
				return 0, nil
			}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var open sync.WaitGroup
		for range views {
			open.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.Header.Set("Accept", "text/event-stream")
				r.Header.Set(auth.HeaderAPIKey, "ann-key")
				p.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		time.Sleep(seconds * time.Second)
		p.Close() // ends every stream
		open.Wait()
		all := 0
		for at, n := range rendered {
			if all += n; n > 2 && !at.Equal(began) {
				t.Errorf("%d views were rendered together %v after they were opened", n, at.Sub(began))
			}
		}
		if all < views*seconds || all > views*(seconds+2) {
			t.Errorf("%d views were rendered %d times in %d s", views, all, seconds)
		}
	})
}

func TestReaderHasAsManyStreamsAsAreFree(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth, o.MaxConnections = &people{}, 16 }) // 8 streams
	for i := range 6 {
		if status, _ := s.open(t, s.Client(), auth.HeaderAPIKey, "ann-key"); (status == http.StatusOK) != (i < 4) || i >= 4 && status != http.StatusTooManyRequests {
			t.Errorf("stream %d: %d", i+1, status)
		}
	}
	if status, _ := s.open(t, s.Client(), auth.HeaderAPIKey, "bea-key"); status != http.StatusOK {
		t.Errorf("another reader: %d", status)
	}
	s.page.Close()
	if log := s.record.String(); !strings.Contains(log, "Too many open tabs") {
		t.Errorf("no line about the refusal: %s", log)
	}
}

func TestLiveViewStreamsChanges(t *testing.T) {
	s := newSite(t, nil)
	_, lines := s.open(t, s.Client())
	if !strings.Contains(lines.Text(), `<h1 id="h">0</h1>`) {
		t.Fatalf("the stream begins with %q: %v", lines.Text(), lines.Err())
	}
	s.count.Store(1234567)
	if skip(lines, `<h1 id="h">1,234,567</h1>`); lines.Err() != nil {
		t.Fatalf("the change is missing: %v", lines.Err())
	}
	s.page.Close()
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream did not end cleanly: %v", err)
	}
}

// A browser ends a line of a stream at a carriage return too. A text of others, such as the error of a
// receiver, must not begin an event of its own.
func TestCarriageReturnInAContentBeginsNoEvent(t *testing.T) {
	const hostile = "a\r\revent: process\rdata: other\r\rb"
	for name, data := range map[string]func(*http.Request) (any, error){
		"content": func(*http.Request) (any, error) { return hostile, nil },
		"trouble": func(*http.Request) (any, error) { return nil, errors.New(hostile) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(o *page.Options) {
				o.Sections[0].Templates = fstest.MapFS{"counter.html": {Data: []byte(`<p>{{.Data}}</p><i id="h"></i>`)}}
				o.Sections[0].Views[0].Data = data
			})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/ops/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "text/event-stream")
			reply, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer reply.Body.Close()
			var stream []byte
			for part := make([]byte, 4096); !bytes.Contains(stream, []byte("rb")) && !bytes.Contains(stream, []byte("b</p>")) && err == nil; {
				var n int
				n, err = reply.Body.Read(part)
				stream = append(stream, part[:n]...)
				if bytes.HasSuffix(stream, []byte("\n\n")) && bytes.Count(stream, []byte("event: "+name)) > 0 {
					break
				}
			}
			// Lines of a stream end at CR LF, LF or CR (HTML standard, section 9.2.5).
			var events []string
			for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(stream)), "\n") {
				if kind, ok := strings.CutPrefix(line, "event: "); ok {
					events = append(events, kind)
				}
			}
			if got := strings.Join(events, " "); got != "process "+name {
				t.Errorf("the browser sees the events %q in %q", got, stream)
			}
		})
	}
}

// Each connection may have a head in memory before its caller is known.
func TestLongHeadIsRefused(t *testing.T) {
	s := newSite(t, nil)
	var listening net.ListenConfig
	listener, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.page.Run(ctx, listener) }()
	for size, want := range map[int]int{30 << 10: http.StatusOK, 40 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/ops/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Padding", strings.Repeat("x", size))
		reply, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("a head of %d bytes is answered with %d, want %d", size, reply.StatusCode, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// anyone authenticates each credential as ann.
type anyone struct{ people }

func (*anyone) Authenticate(_ context.Context, r *http.Request) (auth.Principal, error) {
	if r.Header.Get(auth.HeaderAPIKey) == "" {
		return auth.Principal{}, auth.ErrNoCredential
	}
	return auth.Principal{ID: "ann", ReadsAll: true, WritesAll: true}, nil
}

// Otherwise a person who signs in and out again and again would fill the memory, and each credential would stay
// in it for twelve hours.
func TestCredentialLeavesMemoryAtTheSignOut(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &anyone{} })
	serve := func(method, path string, form url.Values, cookie string) (*http.Response, string) {
		r, answer := httptest.NewRequest(method, path, strings.NewReader(form.Encode())), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", cookie)
		s.page.ServeHTTP(answer, r)
		return answer.Result(), answer.Body.String()
	}
	token := func(cookie string) string {
		_, body := serve(http.MethodGet, "/ops/set?to=5", nil, cookie)
		return hidden.FindStringSubmatch(body)[2]
	}
	heap := func() uint64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	const sessions, size = 400, 60_000
	before := heap()
	for range sessions {
		answer, body := serve(http.MethodPost, "/ops/sign-in", url.Values{"credential": {strings.Repeat("x", size)}, "token": {token("")}}, "")
		if len(answer.Cookies()) != 1 {
			t.Fatalf("sign-in: %d %s", answer.StatusCode, body)
		}
		cookie := answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value
		if answer, body := serve(http.MethodPost, "/ops/sign-out", url.Values{"token": {token(cookie)}}, cookie); answer.StatusCode != http.StatusSeeOther {
			t.Fatalf("sign-out: %d %s", answer.StatusCode, body)
		}
	}
	if after := heap(); after > before+sessions*size/3 {
		t.Errorf("%d ended sessions keep %d bytes, of %d bytes of credentials", sessions, after-before, sessions*size)
	}
}

// The session has the rights of its credential. So no script can read its cookie, no other site can send it, and
// no network between a browser and an encrypted page can see it.
func TestCookieOfASessionIsKeptFromOthers(t *testing.T) {
	for name, c := range map[string]struct {
		encrypted, forwarded, secure bool
	}{
		"not encrypted": {}, "encrypted": {encrypted: true, secure: true}, "encrypted up to a proxy": {forwarded: true, secure: true},
	} {
		s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
		send := func(method, path string, form url.Values, session string) ([]*http.Cookie, string) {
			r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Cookie", session)
			if c.encrypted {
				r.TLS = &tls.ConnectionState{}
			}
			if c.forwarded {
				r.Header.Set("X-Forwarded-Proto", "https")
			}
			w := httptest.NewRecorder()
			s.page.ServeHTTP(w, r)
			return w.Result().Cookies(), w.Body.String()
		}
		token := func(session string) string {
			_, body := send(http.MethodGet, "http://localhost/ops/set?to=5", nil, session)
			return hidden.FindStringSubmatch(body)[2]
		}
		given, _ := send(http.MethodPost, "http://localhost/ops/sign-in", url.Values{"credential": {"ann-key"}, "token": {token("")}}, "")
		if len(given) != 1 || given[0].Value == "" {
			t.Fatalf("%s: cookies %v", name, given)
		}
		session := given[0].Name + "=" + given[0].Value
		taken, _ := send(http.MethodPost, "http://localhost/ops/sign-out", url.Values{"token": {token(session)}}, session)
		want := http.Cookie{Name: "feedbox-page", Value: given[0].Value, Path: "/ops/", MaxAge: 12 * 60 * 60, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.secure}
		for _, got := range slices.Concat(given, taken) {
			if got.Raw = ""; !reflect.DeepEqual(*got, want) {
				t.Errorf("%s: %+v, want %+v", name, *got, want)
			}
			want.Value, want.MaxAge = "", -1 // at the sign-out
		}
		if len(taken) != 1 {
			t.Errorf("%s: cookies %v at the sign-out", name, taken)
		}
	}
}

// At the limit the person with most sessions loses the oldest one. The new one counts, so that two people with equally
// many do not end each other's.
func TestNewSessionCountsAmongThoseOfItsPerson(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	send := func(method, path string, form url.Values, session string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(form.Encode())), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", session)
		s.page.ServeHTTP(w, r)
		return w
	}
	token := hidden.FindStringSubmatch(send(http.MethodGet, "/ops/", nil, "").Body.String())[2]
	var sessions []string
	for _, name := range append(slices.Repeat([]string{"ann"}, 500), slices.Repeat([]string{"bea"}, 501)...) {
		w := send(http.MethodPost, "/ops/sign-in", url.Values{"credential": {name + "-key"}, "token": {token}}, "")
		if len(w.Result().Cookies()) != 1 {
			t.Fatalf("sign-in of %s: %d %s", name, w.Code, w.Body)
		}
		cookie := w.Result().Cookies()[0]
		sessions = append(sessions, cookie.Name+"="+cookie.Value)
	}
	for of, want := range map[int]int{0: http.StatusOK, 499: http.StatusOK, 500: http.StatusUnauthorized, 501: http.StatusOK, 1000: http.StatusOK} {
		if got := send(http.MethodGet, "/ops/", nil, sessions[of]).Code; got != want {
			t.Errorf("session %d of 1001: %d, want %d", of+1, got, want)
		}
	}
}
