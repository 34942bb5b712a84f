package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
	contactsapi "feedbox/infrastructure/httpapi/contacts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a running server with a store in memory, and a client.
type api struct {
	t      *testing.T
	memory *memory
	url    string
	client *http.Client
	logs   *syncBuffer
	// session, if not nil, is sent with each request and updated, like a client that reads
	// its own writes.
	session *session
}

// session is a session token shared by several clients.
type session struct {
	mu    sync.Mutex // guards token
	token string
}

func (s *session) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

func (s *session) set(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// syncBuffer is a buffer for log lines of several goroutines.
type syncBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newServer returns a server of the contacts of m.
func newServer(m *mediator.Mediator, options *httpapi.Options) (*httpapi.Server, error) {
	return httpapi.New([]httpapi.Resource{contactsapi.Resource(m)}, options)
}

// start runs a server with a store in memory.
func start(t *testing.T, options *httpapi.Options) *api {
	t.Helper()
	memory := newMemory()
	m := mediator.New()
	if err := errors.Join(
		contacts.RegisterCommands(m, contacts.CommandPorts{Work: memory, IDs: uuid.New, Now: clock}),
		contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: memoryReader{memory}}),
	); err != nil {
		t.Fatal(err)
	}
	a := startOver(t, m, options)
	a.memory = memory
	return a
}

// startOver runs a server of the given application.
func startOver(t *testing.T, m *mediator.Mediator, options *httpapi.Options) *api {
	t.Helper()
	a := &api{t: t, logs: &syncBuffer{}}
	if options == nil {
		options = &httpapi.Options{}
	}
	options.Logger = slog.New(slog.NewJSONHandler(a.logs, nil))
	server, err := newServer(m, options)
	if err != nil {
		t.Fatal(err)
	}
	a.serve(server)
	return a
}

// serve runs the server like the program does, and stops it when the test ends.
func (a *api) serve(server *httpapi.Server) {
	listener := httptest.NewUnstartedServer(nil).Listener
	a.url = "http://" + listener.Addr().String()
	transport := &http.Transport{}
	a.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, stop := context.WithCancel(context.WithoutCancel(a.t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	a.t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			a.t.Errorf("Run: %v", err)
		}
	})
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends one request. Headers are given as name, value, name, value.
func (a *api) do(method, path, body string, headers ...string) answer {
	a.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, content)
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if strings.EqualFold(headers[i], "Content-Type") {
			r.Header.Del("Content-Type")
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	if a.session != nil && a.session.get() != "" && r.Header.Get("x-ms-session-token") == "" {
		r.Header.Set("x-ms-session-token", a.session.get())
	}
	response, err := a.client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if token := response.Header.Get("x-ms-session-token"); token != "" && a.session != nil {
		a.session.set(token)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

const jane = `{"firstName":"Jane","lastName":"Doe","email":"jane@contoso.example","description":"A contact","companyName":"Contoso"}`

// create creates a contact and returns its path and ETag.
func (a *api) create() (path, etag string) {
	a.t.Helper()
	created := a.do(http.MethodPost, "/api/contacts", jane)
	if created.status != http.StatusCreated {
		a.t.Fatalf("create answered %d %s", created.status, created.body)
	}
	return created.header.Get("Location"), created.header.Get("ETag")
}

// problem has the fields of a problem document that tests check.
type problem struct {
	Type, Title, Detail, Code, TraceID string
	Status                             int
	Errors                             []struct{ Pointer, Detail string }
}

// problemOf checks the form of a problem document and returns it.
func problemOf(t *testing.T, got answer) problem {
	t.Helper()
	var p problem
	if ct := got.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("a %d has the content type %q: %s", got.status, ct, got.body)
		return p
	}
	decoder := json.NewDecoder(strings.NewReader(got.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Errorf("problem document: %v: %s", err, got.body)
	}
	if p.Status != got.status || p.Type != "about:blank" || p.Title != http.StatusText(got.status) || p.Code == "" || len(p.TraceID) != 32 || p.Detail == "" {
		t.Errorf("incomplete problem document for %d: %s", got.status, got.body)
	}
	if p.Code != got.header.Get("x-ms-error-code") {
		t.Errorf("x-ms-error-code is %q, code is %q", got.header.Get("x-ms-error-code"), p.Code)
	}
	return p
}

// pointers lists the pointers of the faults.
func (p problem) pointers() string {
	var all []string
	for _, e := range p.Errors {
		all = append(all, e.Pointer)
	}
	return strings.Join(all, " ")
}

// page is a page of contacts.
type page struct {
	Items []struct {
		ID, Email, FullName, CompanyName, ETag string
	}
	HasMore  bool
	NextLink string
}

func pageOf(t *testing.T, got answer) page {
	t.Helper()
	var p page
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	return p
}
