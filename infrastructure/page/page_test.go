package page_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site serves a page with one section, which shows a counter, and an act that sets it.
type site struct {
	*httptest.Server
	count  atomic.Int64
	record record
	page   *page.Page
}

// record is a log that requests write while the test reads it.
type record struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func newSite(t *testing.T, adjust func(o *page.Options)) *site {
	t.Helper()
	s := &site{}
	o := &page.Options{
		Prefix: "/ops", Actions: true, Log: slog.New(slog.NewTextHandler(&s.record, nil)),
		Sections: []page.Section{{
			Title: "Counter",
			Templates: fstest.MapFS{
				"counter.html": {Data: []byte(`<h1 id="h">{{count .Data}}</h1>{{if .May}}<a href="{{link "set" "to" "5"}}">set</a>{{end}}`)},
			},
			Views: []page.View{{Template: "counter.html", Every: time.Millisecond, Data: func(*http.Request) (any, error) { return s.count.Load(), nil }}},
			Acts: []page.Act{{
				Path: "set", Title: "Set the counter", Verb: "Set",
				Preview: func(_ context.Context, v url.Values) (*page.Preview, error) {
					return &page.Preview{Summary: "It becomes " + v.Get("to"), Stamp: string(rune('0' + s.count.Load()))}, nil
				},
				Do: func(_ context.Context, o *page.Order) error {
					if o.Values.Get("to") != "5" {
						return errors.New("only five works")
					}
					s.count.Store(5)
					o.Say("it is five")
					return nil
				},
			}},
		}},
	}
	if adjust != nil {
		adjust(o)
	}
	var err error
	if s.page, err = page.New(o); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(s.page)
	t.Cleanup(func() { s.page.Close(); s.Close() })
	return s
}

// get returns status and body.
func (s *site) get(t *testing.T, path string, headers ...string) (int, string) {
	t.Helper()
	return s.do(t, http.MethodGet, path, nil, headers...)
}

func (s *site) do(t *testing.T, method, path string, form url.Values, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(reply.Body)
	if csp := reply.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("%s %s: content security policy %q", method, path, csp)
	}
	return reply.StatusCode, body.String()
}

var hidden = regexp.MustCompile(`name="(token|stamp)" value="([^"]*)"`)

// filled returns the form of an act, filled in like a person would.
func (s *site) filled(t *testing.T, path string, headers ...string) url.Values {
	t.Helper()
	status, body := s.get(t, path, headers...)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	form := url.Values{"who": {"Ann"}, "why": {"a test"}, "to": {"5"}}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

func TestConfirmedActRunsAndIsLogged(t *testing.T) {
	s := newSite(t, nil)
	form := s.filled(t, "/ops/set?to=5")
	status, body := s.do(t, http.MethodPost, "/ops/set", form, "Sec-Fetch-Site", "same-origin", "Origin", s.URL)
	if status != http.StatusOK || !strings.Contains(body, "it is five") || s.count.Load() != 5 {
		t.Fatalf("%d %s", status, body)
	}
	s.page.Close()
	for _, want := range []string{"who=Ann", `why="a test"`, "of_to=5", "act=/set", "operator act done"} {
		if !strings.Contains(s.record.String(), want) {
			t.Errorf("%s is missing from the log %s", want, s.record.String())
		}
	}
}

func TestPageIsNamedFeedboxUnlessItHasATitle(t *testing.T) {
	for title, want := range map[string]string{"": "Feedbox", "Orders <dev>": "Orders &lt;dev&gt;"} {
		s := newSite(t, func(o *page.Options) { o.Title = title })
		if _, body := s.get(t, "/ops/"); !strings.Contains(body, "<title>Counter · "+want+"</title>") || !strings.Contains(body, "<span>"+want+"</span>") {
			t.Errorf("title %q: %q is missing in\n%s", title, want, body)
		}
	}
}

// The beginning of a view would look like a complete one.
func TestPartOfAViewIsNotShown(t *testing.T) {
	s := newSite(t, func(o *page.Options) {
		o.Sections[0].Templates = fstest.MapFS{"counter.html": {Data: []byte(`<h1 id="h">the beginning</h1>{{index .Data 9}}`)}}
		o.Sections[0].Views[0].Data = func(*http.Request) (any, error) { return []int{1}, nil }
		o.Sections[0].Acts[0].Preview = func(context.Context, url.Values) (*page.Preview, error) {
			return &page.Preview{Template: "counter.html", Data: []int{1}}, nil
		}
	})
	for _, path := range []string{"/ops/", "/ops/set?to=5"} {
		if status, body := s.get(t, path); status != http.StatusBadGateway || strings.Contains(body, "the beginning") || !strings.Contains(body, "counter.html") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/ops/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	reply, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	skip(lines, "event: process")
	if skip(lines, "event: "); lines.Text() != "event: trouble" {
		t.Errorf("the stream continues with %q", lines.Text())
	}
}

// A person sees the kind of a failure and the remedy. A program sees the status.
func TestFailuresAreShownByTheirKind(t *testing.T) {
	var fails error
	s := newSite(t, func(o *page.Options) {
		o.Sections[0].Views[0].Data = func(*http.Request) (any, error) { return nil, fails }
		o.Sections[0].Acts[0].Preview = func(context.Context, url.Values) (*page.Preview, error) { return nil, fails }
	})
	of := func(kind fault.Kind) error { return fmt.Errorf("read: %w", fault.New(kind, "", "no <k>")) }
	shown := regexp.MustCompile(`(?s)<section class="card refused">\s*<h1>(.*?)</h1>\s*<p>(.*?)</p>(?:\s*<p class="next">(.*?)</p>)?\s*</section>`)
	for _, c := range []struct {
		err    error
		status int
		want   [3]string // title, detail, next
	}{
		{of(fault.NotFound), 404, [3]string{"Not found", "no &lt;k&gt;"}},
		{of(fault.PreconditionFailed), 412, [3]string{"Changed meanwhile", "no &lt;k&gt;", "Load the page again, and repeat the act if you still want it."}},
		{of(fault.Conflict), 409, [3]string{"Not possible in this state", "no &lt;k&gt;"}},
		{of(fault.Invalid), 400, [3]string{"Invalid request", "no &lt;k&gt;"}},
		{of(fault.Throttled), 503, [3]string{"The database is throttled", "no &lt;k&gt;", "Try again in a moment: the account has too few request units."}},
		{of(fault.Internal), 500, [3]string{"The request failed", "no &lt;k&gt;"}},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 504, [3]string{"No answer in time", "read: context deadline exceeded", "Load the page again; the Doctor section checks the dependencies."}},
		{errors.New("no reply"), 502, [3]string{"The request failed", "no reply", "The Doctor section checks the dependencies and suggests changes."}},
		{fmt.Errorf("act: %w", &page.Refusal{Status: 418, Title: "A", Detail: "B", Next: "C"}), 418, [3]string{"A", "B", "C"}},
	} {
		fails = c.err
		for _, path := range []string{"/ops/", "/ops/set?to=5"} {
			status, body := s.get(t, path)
			if got := shown.FindStringSubmatch(body); status != c.status || got == nil || [3]string(got[1:]) != c.want {
				t.Errorf("%s, %v: %d %q, want %d %q in\n%s", path, c.err, status, got, c.status, c.want, body)
			}
		}
	}
}

// The view of an act shows its progress, and then its result.
func TestProgressAndEndOfAnActAreShown(t *testing.T) {
	for _, fails := range []error{nil, errors.New("only <five> works")} {
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			p, err := page.New(&page.Options{Prefix: "/ops", Actions: true, Sections: []page.Section{{
				Title: "Counter", Templates: fstest.MapFS{"none.html": {}}, Acts: []page.Act{{
					Path: "set", Title: "Set the counter", Verb: "Set", Preview: func(context.Context, url.Values) (*page.Preview, error) { return &page.Preview{}, nil },
					Do: func(_ context.Context, o *page.Order) error {
						o.Progress(1234, 5678)
						<-end
						o.Progress(5678, 5678)
						o.Next("See the counter", "/counter?of=a%26b")
						return fails
					},
				}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			serve := func(r *http.Request) *httptest.ResponseRecorder {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				w := httptest.NewRecorder()
				p.ServeHTTP(w, r)
				return w
			}
			form := url.Values{"who": {"Ann"}, "why": {"a test"}, "to": {"5"}}
			for _, m := range hidden.FindAllStringSubmatch(serve(httptest.NewRequest(http.MethodGet, "http://localhost/ops/set?to=5", nil)).Body.String(), -1) {
				form.Set(m[1], m[2])
			}
			if confirmed := serve(httptest.NewRequest(http.MethodPost, "http://localhost/ops/set", strings.NewReader(form.Encode()))); confirmed.Header().Get("Location") != "/ops/acts/1" {
				t.Fatalf("%d %s", confirmed.Code, confirmed.Body)
			}
			want := func(when string, parts, others []string) {
				t.Helper()
				for _, path := range []string{"/ops/acts/1", "/ops/acts"} {
					body := serve(httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)).Body.String()
					for _, part := range parts {
						if listed := strings.HasPrefix(part, "<span"); (listed || path != "/ops/acts") && !strings.Contains(body, part) {
							t.Errorf("%s, %s: %q is missing in\n%s", when, path, part, body)
						}
					}
					for _, other := range others {
						if strings.Contains(body, other) {
							t.Errorf("%s, %s: %q is in\n%s", when, path, other, body)
						}
					}
				}
			}
			const running, done, failed = `<span class="state busy">running</span>`, `<span class="state good">done</span>`, `<span class="state bad">failed</span>`
			const bar, all, next, why = `<progress max="5678" value="1234" aria-label="progress"></progress> 1,234 of 5,678</p>`, `<p>5,678 of 5,678</p>`, `<a class="button main" href="/ops/counter?of=a%26b">See the counter</a>`,
				`<p><b>The request failed.</b> only &lt;five&gt; works</p><p>The Doctor section checks the dependencies and suggests changes.</p>`
			want("before its end", []string{running, bar, "<dt>who</dt><dd>Ann</dd>", "<dt>why</dt><dd>a test</dd>", "<dt>to</dt><dd>5</dd>"}, []string{"<dt>ended</dt>", done, failed, next})
			close(end)
			synctest.Wait()
			if fails == nil {
				want("after its end", []string{done, all, next, "<dt>ended</dt>"}, []string{running, failed, "<progress"})
			} else {
				want("after its failure", []string{failed, all, next, why, "<dt>ended</dt>"}, []string{running, done, "<progress"})
			}
		})
	}
}

func TestNumbersAndDurationsAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", -999: "-999", 1000: "1,000", -1234567: "-1,234,567", 12345678901: "12,345,678,901"} {
		if got := page.Number(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for rate, want := range map[float64]string{0: "0", 0.04: "<0.1", 0.05: "0.1", 9.94: "9.9", 10: "10", 10.5: "11", 1234.4: "1,234"} {
		if got := page.Rate(rate); got != want {
			t.Errorf("%g: %s, want %s", rate, got, want)
		}
	}
	if got := page.Rate(math.NaN()); got != "–" {
		t.Errorf("a rate that is not known: %s", got)
	}
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", time.Second: "1.0 s", 9900 * time.Millisecond: "9.9 s", 10 * time.Second: "10 s", 59 * time.Second: "59 s",
		time.Minute: "1 min", 61 * time.Second: "1 min 1 s", time.Hour - time.Second: "59 min 59 s", time.Hour: "1 h", 47*time.Hour + 59*time.Minute: "47 h 59 min",
		48 * time.Hour: "2 d", 75 * time.Hour: "3 d 3 h", 240 * time.Hour: "10 d", -90 * time.Second: "-1 min 30 s",
	} {
		if got := page.Span(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

// The process, which may be a relay, continues.
func TestPanicOfAnActIsItsFailure(t *testing.T) {
	s := newSite(t, func(o *page.Options) {
		o.Sections[0].Acts[0].Do = func(context.Context, *page.Order) error { panic("no such range") }
	})
	form := s.filled(t, "/ops/set?to=5")
	if status, body := s.do(t, http.MethodPost, "/ops/set", form, "Sec-Fetch-Site", "same-origin", "Origin", s.URL); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	s.page.Close() // waits for the act
	if text := s.record.String(); !strings.Contains(text, "operator act failed") || !strings.Contains(text, "bug in this program: no such range") {
		t.Errorf("the log: %s", text)
	}
}

func TestUnknownActIsRefusedWithTheReason(t *testing.T) {
	if status, body := newSite(t, nil).get(t, "/ops/acts/nosuch"); status != http.StatusNotFound || !strings.Contains(body, "It belongs to an earlier process, or is too old.") || !strings.Contains(body, "The log has the record of all acts.") {
		t.Errorf("%d %s", status, body)
	}
}

// A curve begins at zero. Where nothing is known it has a gap, which is not drawn as a line.
func TestCurveHasAGapWhereNothingIsKnown(t *testing.T) {
	unknown := math.NaN()
	for want, points := range map[string][]float64{
		`at most 4.0"><path class="area" d="M0.0 48.0L0.0 24.5L75.0 2.0L75.0 48.0ZM225.0 48.0L225.0 47.0L300.0 24.5L300.0 48.0Z"/><path class="line" d="M0.0 24.5L75.0 2.0M225.0 47.0L300.0 24.5"/>`: {2, 4, unknown, 0, 2},
		`at most 0"><path class="area" d="M0.0 48.0L0.0 47.0L300.0 47.0L300.0 48.0Z"/><path class="line" d="M0.0 47.0L300.0 47.0"/>`:                                                                 {0, 0},
		`at most 1.0"><path class="area" d="M300.0 48.0L300.0 2.0L300.0 48.0Z"/><path class="line" d="M300.0 2.0"/>`:                                                                                 {1},
		`not known"><path class="area" d=""/><path class="line" d=""/>`:                                                                                                                              {unknown, unknown},
	} {
		s := newSite(t, func(o *page.Options) {
			section := &o.Sections[0]
			section.Templates = fstest.MapFS{"counter.html": {Data: []byte(`{{spark .Data}}`)}}
			section.Views[0].Data = func(*http.Request) (any, error) { return points, nil }
		})
		if _, body := s.get(t, "/ops/"); !strings.Contains(body, want) {
			t.Errorf("%v: want %s in\n%s", points, want, body)
		}
	}
}

func TestInvalidConfirmationIsRefused(t *testing.T) {
	s := newSite(t, nil)
	good := s.filled(t, "/ops/set?to=5")
	with := func(name, value string) url.Values {
		form := url.Values{}
		for n, v := range good {
			form[n] = v
		}
		form.Set(name, value)
		return form
	}
	for name, c := range map[string]struct {
		form    url.Values
		headers []string
		status  int
		words   string
	}{
		"another site":     {good, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden, "another site"},
		"a sibling":        {good, []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden, "another site"},
		"another origin":   {good, []string{"Origin", "http://evil.example"}, http.StatusForbidden, "another site"},
		"no origin":        {good, []string{"Origin", "null"}, http.StatusForbidden, "another site"},
		"another host":     {good, []string{"Host", "evil.example"}, http.StatusMisdirectedRequest, "Host name refused"},
		"another process":  {with("token", "old"), nil, http.StatusForbidden, "stale"},
		"no reason":        {with("why", " "), nil, http.StatusUnprocessableEntity, "Enter a reason"},
		"no name":          {with("who", ""), nil, http.StatusUnprocessableEntity, "Enter your name"},
		"an older preview": {with("stamp", "0011"), nil, http.StatusConflict, "has changed since"},
		"too large":        {with("why", strings.Repeat("x", 5<<20)), nil, http.StatusBadRequest, "could not be read"},
	} {
		status, body := s.do(t, http.MethodPost, "/ops/set", c.form, c.headers...)
		if status != c.status || !strings.Contains(body, c.words) {
			t.Errorf("%s: %d, want %d with %q in %s", name, status, c.status, c.words, body)
		}
	}
	if s.count.Load() != 0 {
		t.Error("the act ran")
	}
	if status, body := s.get(t, "/"); status != http.StatusNotFound || !strings.Contains(body, "Page not found") {
		t.Errorf("outside the prefix: %d %s", status, body)
	}
}

// On a loopback address a page also refuses foreign hosts if callers must sign in, because a web
// page whose name was pointed here could guess credentials. Behind an ingress it serves any host.
func TestForeignHostIsRefusedOnLoopbackOrWithoutAuthentication(t *testing.T) {
	key := "0123456789abcdef0123456789abcdef"
	keys, err := auth.NewAPIKeys([]auth.APIKey{{Principal: "ann", Hash: sha256.Sum256([]byte(key))}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bind string
		o    page.Options
		host string
		want int
	}{
		"loopback, signed in":              {"127.0.0.1:0", page.Options{Auth: keys}, "evil.example", 421},
		"loopback, signed in, own name":    {"127.0.0.1:0", page.Options{Auth: keys}, "page.localhost:80", 200},
		"loopback, signed in, allowed":     {"127.0.0.1:0", page.Options{Auth: keys, AllowedHosts: []string{"ops.test"}}, "ops.test", 200},
		"loopback, open, any host allowed": {"127.0.0.1:0", page.Options{AllowedHosts: []string{"*"}}, "evil.example", 200},
		"public, signed in":                {"0.0.0.0:0", page.Options{Auth: keys}, "ops.contoso.example", 200},
		"public, open":                     {"0.0.0.0:0", page.Options{}, "evil.example", 421},
	} {
		s := newSite(t, func(o *page.Options) { o.Auth, o.AllowedHosts = c.o.Auth, c.o.AllowedHosts })
		listener, err := net.Listen("tcp", c.bind)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.page.Run(ctx, listener) }()
		s.URL = "http://127.0.0.1:" + port
		status, body := s.get(t, "/ops/", "Host", c.host, auth.HeaderAPIKey, key)
		if status != c.want || status == 421 && !strings.Contains(body, "FEEDBOX_ALLOWED_HOSTS") {
			t.Errorf("%s: %d, want %d: %s", name, status, c.want, body)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Anyone may request the page for sign-in, any number of times. It is rendered once; rendering took
// some 280 allocations a request. The address to return to is still escaped.
func TestSignInPageIsRenderedOnce(t *testing.T) {
	keys, err := auth.NewAPIKeys([]auth.APIKey{{Principal: "ann", Hash: sha256.Sum256([]byte("key"))}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(o *page.Options) { o.Auth = keys })
	ask := func(back string) string {
		answer := httptest.NewRecorder()
		s.page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, back, nil))
		return answer.Body.String()
	}
	first, other := ask("/ops/acts"), ask(`/ops/acts?a="><b>'&c=1`)
	if !strings.Contains(first, `name="back" value="/ops/acts"`) || !strings.Contains(other, `name="back" value="/ops/acts?a=&#34;&gt;&lt;b&gt;&#39;&amp;c=1"`) ||
		strings.Contains(other, "<b>") || !hidden.MatchString(first) || len(other)-len(first) != len(`?a=&#34;&gt;&lt;b&gt;&#39;&amp;c=1`) {
		t.Errorf("%s\n%s", first, other)
	}
	if allocations := testing.AllocsPerRun(20, func() { ask("/ops/") }); allocations > 100 {
		t.Errorf("%.0f allocations", allocations)
	}
}

// A browser ignores control characters, so a slash, a tab and a host are another site.
func TestSignInReturnsOnlyToThePage(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Prefix = "" })
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := s.filled(t, "/set?to=5")
	for back, want := range map[string]string{"/acts": "/acts", "/\t/evil.example": "/", "//evil.example": "/", "/\\evil.example": "/"} {
		form.Set("back", back)
		reply, err := client.PostForm(s.URL+"/sign-in", form)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if got := reply.Header.Get("Location"); got != want {
			t.Errorf("back %q leads to %q, want %q", back, got, want)
		}
	}
}

// people authenticates the readers ann and bea by a key in the form NAME-key. The test can revoke
// the keys of one of them.
type people struct {
	revoked atomic.Value
	down    atomic.Bool // no credential can be judged
}

func (p *people) Authenticate(_ context.Context, r *http.Request) (auth.Principal, error) {
	name, ok := strings.CutSuffix(r.Header.Get(auth.HeaderAPIKey), "-key")
	switch {
	case r.Header.Get(auth.HeaderAPIKey) == "":
		return auth.Principal{}, auth.ErrNoCredential
	case !ok || p.revoked.Load() == name:
		return auth.Principal{}, auth.ErrBadCredential
	case p.down.Load():
		return auth.Principal{}, errors.New("the identity provider does not answer")
	}
	return auth.Principal{ID: name, ReadsAll: true, WritesAll: true}, nil
}

func (*people) Challenge() string { return "ApiKey" }

// signedIn returns a client with the session of a person.
func (s *site) signedIn(t *testing.T, name string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: s.Client().Transport}
	if status, body := s.as(t, client, "/ops/sign-in", url.Values{"credential": {name + "-key"}, "token": {s.tokenFor(t, client)}, "back": {"/ops/"}}); status != http.StatusOK {
		t.Fatalf("sign-in of %s: %d %s", name, status, body)
	}
	return client
}

// as posts a form in the session of a client.
func (s *site) as(t *testing.T, client *http.Client, path string, form url.Values) (int, string) {
	t.Helper()
	reply, err := client.PostForm(s.URL+path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	return reply.StatusCode, string(body)
}

// tokenFor returns the token of the forms that a client gets.
func (s *site) tokenFor(t *testing.T, client *http.Client) string {
	t.Helper()
	reply, err := client.Get(s.URL + "/ops/set?to=5")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	found := hidden.FindStringSubmatch(string(body))
	if found == nil {
		t.Fatalf("no token in %s", body)
	}
	return found[2]
}

// A session ends after twelve hours with its streams, and its credential is removed.
func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := page.New(&page.Options{Auth: &people{}, Sections: []page.Section{{
			Title: "Counter", Templates: fstest.MapFS{"counter.html": {Data: []byte(`<h1>0</h1>`)}},
			Views: []page.View{{Template: "counter.html", Every: time.Hour, Data: func(*http.Request) (any, error) { return 0, nil }}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		serve := func(r *http.Request, headers ...string) *httptest.ResponseRecorder {
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r.WithContext(t.Context()))
			return w
		}
		signIn := serve(httptest.NewRequest(http.MethodGet, "/", nil)).Body.String()
		form := url.Values{"credential": {"ann-key"}, "token": {hidden.FindStringSubmatch(signIn)[2]}, "back": {"/"}}
		cookies := serve(httptest.NewRequest(http.MethodPost, "/sign-in", strings.NewReader(form.Encode())), "Content-Type", "application/x-www-form-urlencoded").Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("cookies %v", cookies)
		}
		session, began := cookies[0].Name+"="+cookies[0].Value, time.Now()
		if status := serve(httptest.NewRequest(http.MethodGet, "/", nil), "Cookie", session).Code; status != http.StatusOK {
			t.Fatalf("in the session: %d", status)
		}
		serve(httptest.NewRequest(http.MethodGet, "/", nil), "Accept", "text/event-stream", "Cookie", session) // until it ends
		if took := time.Since(began); took != 12*time.Hour {
			t.Errorf("the stream ended after %v, want 12 hours", took)
		}
		if status := serve(httptest.NewRequest(http.MethodGet, "/", nil), "Cookie", session).Code; status != http.StatusUnauthorized {
			t.Errorf("after the session: %d", status)
		}
	})
}

// An act may take long, and its person may start others meanwhile.
func TestPersonMayRunAsManyActsAsAreFree(t *testing.T) {
	open := make(chan struct{})
	s := newSite(t, func(o *page.Options) {
		o.Auth = &people{}
		do := o.Sections[0].Acts[0].Do
		o.Sections[0].Acts[0].Do = func(ctx context.Context, order *page.Order) error {
			<-open
			return do(ctx, order)
		}
		o.Sections[0].Acts = append(o.Sections[0].Acts, page.Act{Path: "now", Title: "Now", Verb: "Now", AtOnce: true, Do: func(context.Context, *page.Order) error { return nil }})
	})
	client := s.signedIn(t, "ann")
	form := s.filled(t, "/ops/set?to=5", auth.HeaderAPIKey, "ann-key")
	form.Set("token", s.tokenFor(t, client))
	var wait sync.WaitGroup
	statuses := make(chan int, 8)
	for range 8 {
		wait.Go(func() {
			status, _ := s.as(t, client, "/ops/set", form)
			statuses <- status
		})
	}
	wait.Wait()
	for range 8 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("an act among half of all: %d", status)
		}
	}
	for _, path := range []string{"/ops/set", "/ops/now"} {
		if status, body := s.as(t, client, path, form); status != http.StatusTooManyRequests || !strings.Contains(body, "Too many acts") {
			t.Errorf("%s beside half of all: %d %s", path, status, body)
		}
	}
	other := s.signedIn(t, "bea")
	form.Set("token", s.tokenFor(t, other))
	if status, body := s.as(t, other, "/ops/set", form); status != http.StatusOK {
		t.Errorf("another person: %d %s", status, body)
	}
	close(open)
	for deadline := time.Now().Add(time.Minute); s.count.Load() != 5; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no act has ended within a minute")
		}
	}
	form = s.filled(t, "/ops/set?to=5", auth.HeaderAPIKey, "ann-key")
	form.Set("token", s.tokenFor(t, client))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the acts end one after the other
		status, body := s.as(t, client, "/ops/set", form)
		if status == http.StatusOK {
			break
		}
		if status != http.StatusTooManyRequests || time.Now().After(deadline) {
			t.Fatalf("after the others have ended: %d %s", status, body)
		}
	}
}

// The form for sign-in that anyone may request is kept. It must not replace the one that names the fault.
func TestWrongCredentialIsReportedToItsSender(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	token := s.tokenFor(t, s.Client()) // shows the form
	for range 2 {
		status, body := s.as(t, s.Client(), "/ops/sign-in", url.Values{"credential": {"guess"}, "token": {token}})
		if status != http.StatusUnauthorized || !strings.Contains(body, `role="alert"`) {
			t.Errorf("a wrong credential: %d without a fault in %s", status, body)
		}
		if status, body := s.get(t, "/ops/"); status != http.StatusUnauthorized || strings.Contains(body, `role="alert"`) {
			t.Errorf("no credential: %d with a fault in %s", status, body)
		}
	}
}

// Guesses are refused with 429 and a sampled log line, and a right credential is still accepted.
func TestWrongCredentialsHaveARate(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	token := s.tokenFor(t, s.Client())
	statuses := map[int]int{}
	for i := range 200 {
		status, _ := s.as(t, s.Client(), "/ops/sign-in", url.Values{"credential": {fmt.Sprint("guess", i)}, "token": {token}})
		statuses[status]++
	}
	if statuses[http.StatusTooManyRequests] == 0 || statuses[http.StatusUnauthorized] < 10 || len(statuses) != 2 {
		t.Errorf("answers to 200 guesses: %v", statuses)
	}
	s.signedIn(t, "ann")
	s.page.Close()
	if log := s.record.String(); !strings.Contains(log, "wrong credential") || strings.Contains(log, "guess1") {
		t.Errorf("log of guesses: %.2000s", log)
	}
}

// Otherwise the log would have no end of an act that a shutdown interrupts, and the process could end within it.
func TestCloseWaitsForRunningActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var record record
		p, err := page.New(&page.Options{Actions: true, Log: slog.New(slog.NewTextHandler(&record, nil)), Sections: []page.Section{{
			Title: "Counter", Templates: fstest.MapFS{"none.html": {}}, Acts: []page.Act{{
				Path: "set", Title: "Set", Verb: "Set", Preview: func(context.Context, url.Values) (*page.Preview, error) { return &page.Preview{}, nil },
				Do: func(ctx context.Context, _ *page.Order) error {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return errors.New("interrupted")
				},
			}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"who": {"ann"}, "why": {"a test"}}
		preview := httptest.NewRecorder()
		p.ServeHTTP(preview, httptest.NewRequest(http.MethodGet, "http://localhost/set", nil))
		for _, m := range hidden.FindAllStringSubmatch(preview.Body.String(), -1) {
			form.Set(m[1], m[2])
		}
		r, confirmed := httptest.NewRequest(http.MethodPost, "http://localhost/set", strings.NewReader(form.Encode())), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if p.ServeHTTP(confirmed, r); confirmed.Code != http.StatusSeeOther {
			t.Fatalf("%d %s", confirmed.Code, confirmed.Body)
		}
		began := time.Now()
		p.Close()
		if took := time.Since(began); took != time.Minute || !strings.Contains(record.String(), "operator act failed") {
			t.Errorf("closed after %s, with the log %s", took, record.String())
		}
		time.Sleep(time.Hour) // the act ends in any case
	})
}

// A page that runs for months keeps the latest 200 acts, and of each the latest 200 lines.
func TestOldActsAndLinesAreForgotten(t *testing.T) {
	s := newSite(t, func(o *page.Options) {
		o.Sections[0].Acts[0].Do = func(_ context.Context, order *page.Order) error {
			for n := range 250 {
				order.Say(fmt.Sprint("line ", n+1))
			}
			return nil
		}
	})
	form := s.filled(t, "/ops/set?to=5")
	for n := range 203 {
		status, body := s.do(t, http.MethodPost, "/ops/set", form)
		if status != http.StatusOK || n == 0 && (!strings.Contains(body, "<li>… 50 lines before</li>\n<li>line 51</li>") || !strings.Contains(body, "<li>line 250</li>\n</ol>")) {
			t.Fatalf("act %d: %d %s", n+1, status, body)
		}
	}
	_, all := s.get(t, "/ops/acts")
	var ids []string
	for _, m := range regexp.MustCompile(`<tr id="act-(\d+)">`).FindAllStringSubmatch(all, -1) {
		ids = append(ids, m[1])
	}
	if len(ids) != 200 || ids[0] != "203" || ids[199] != "4" {
		t.Errorf("the list has the acts %s", ids)
	}
	for path, want := range map[string]int{"/ops/acts/3": http.StatusNotFound, "/ops/acts/4": http.StatusOK, "/ops/acts/203": http.StatusOK, "/ops/acts/204": http.StatusNotFound} {
		if status, body := s.get(t, path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestPageWithoutActionsIsReadOnly(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Actions = false })
	if _, body := s.get(t, "/ops/"); strings.Contains(body, "/ops/set") || !strings.Contains(body, "read-only") {
		t.Error(body)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if status, body := s.do(t, method, "/ops/set?to=5", nil); status != http.StatusForbidden || !strings.Contains(body, "--actions") {
			t.Errorf("%s: %d %s", method, status, body)
		}
	}
}

// One person who signs in again and again must not sign out the others.
func TestSessionsOfOnePersonDoNotEndThoseOfOthers(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	ann := s.signedIn(t, "ann")
	bea := s.Client()
	token := s.tokenFor(t, bea)
	bea.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range 1001 {
		if status, body := s.as(t, bea, "/ops/sign-in", url.Values{"credential": {"bea-key"}, "token": {token}}); status != http.StatusSeeOther {
			t.Fatalf("sign-in: %d %s", status, body)
		}
	}
	if status, _ := s.as(t, ann, "/ops/sign-out", url.Values{"token": {"stale"}}); status != http.StatusForbidden {
		t.Fatalf("a stale token: %d", status)
	}
	reply, err := ann.Get(s.URL + "/ops/")
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Errorf("after 1001 sign-ins of another person, ann gets %d", reply.StatusCode)
	}
}

// The form for sign-in is read from anyone, so it must be short.
func TestLongSignInFormIsRefused(t *testing.T) {
	s := newSite(t, func(o *page.Options) { o.Auth = &people{} })
	token := s.tokenFor(t, s.Client())
	form := url.Values{"credential": {strings.Repeat("x", 1<<20)}, "token": {token}}
	if status, body := s.as(t, s.Client(), "/ops/sign-in", form); status != http.StatusBadRequest || !strings.Contains(body, "could not be read") {
		t.Errorf("a form of 1 MB without a caller is answered with %d", status)
	}
}
