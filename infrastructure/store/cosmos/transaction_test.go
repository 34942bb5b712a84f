package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

var (
	anEvent   = DataObject{ID: "event", PartitionKey: "key", Type: document.TypeEvent, Data: json.RawMessage(`{"n":1}`), TTL: 60}
	aContact  = DataObject{ID: "contact", PartitionKey: "key", Type: "contact", Data: json.RawMessage(`{"a": "é", "v":2}`), TTL: -1, ETag: `"old"`}
	asStored  = DataObject{ID: "contact", PartitionKey: "key", Type: "contact", Data: json.RawMessage(`{"v":2,"a":"\u00e9"}`), TTL: -1}
	changed   = DataObject{ID: "contact", PartitionKey: "key", Type: "contact", Data: json.RawMessage(`{"a":"é","v":3}`), TTL: -1}
	errReset  = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	errRefuse = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
)

// outcomeCase is one commit of an event and a contact, told by the answers to its
// requests.
type outcomeCase struct {
	name    string
	answers []answer
	etags   []azcore.ETag // of the event and the contact; nil: it fails
	kind    fault.Kind
	code    string // if it matters
	retry   time.Duration
}

var outcomes = []outcomeCase{
	{name: "stored", answers: []answer{stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "lost race", answers: []answer{refused(424, 412)}, kind: fault.PreconditionFailed},
	{name: "taken id", answers: []answer{refused(424, 409)}, kind: fault.Conflict},
	{name: "vanished", answers: []answer{refused(424, 404)}, kind: fault.NotFound},
	{name: "too large a document", answers: []answer{refused(424, 413)}, kind: fault.TooLarge},
	{name: "too large a request", answers: []answer{status(413)}, kind: fault.TooLarge},
	{name: "all failed for another's sake", answers: []answer{refused(424, 424)}, kind: fault.Internal},
	{name: "forbidden", answers: []answer{status(403)}, kind: fault.Internal},
	{name: "bad request", answers: []answer{status(400)}, kind: fault.Internal},

	// Refused this time: nothing was written, try again.
	{name: "throttled, then stored", answers: []answer{status(429, store.HeaderRetryAfter, "1500"), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "an operation throttled, then stored", answers: []answer{refused(424, 429), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "throttled for long", answers: []answer{status(429, store.HeaderRetryAfter, "60000")}, kind: fault.Throttled, retry: time.Minute},
	{name: "throttled for ever", answers: []answer{status(429), status(429), status(429, store.HeaderRetryAfter, "70")}, kind: fault.Throttled, retry: 70 * time.Millisecond},
	{name: "concurrent write, then stored", answers: []answer{status(449), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "partition moves, then stored", answers: []answer{status(410), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "nobody listens", answers: []answer{broken(errRefuse), broken(errRefuse), broken(errRefuse), broken(errRefuse)}, kind: fault.Unavailable, code: "store_unavailable"},

	// The outcome is unknown: the same again.
	{name: "server error, then stored", answers: []answer{status(500), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "unavailable, then stored", answers: []answer{status(503), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "time-out, then stored", answers: []answer{status(408), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "silence, then stored", answers: []answer{silent, stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "reset, then lost race", answers: []answer{broken(errReset), refused(424, 412)}, kind: fault.PreconditionFailed},
	{name: "reset, then taken id", answers: []answer{broken(errReset), refused(424, 409)}, kind: fault.Conflict},
	{name: "no answer at all", answers: []answer{status(500), broken(io.ErrUnexpectedEOF), status(504)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "reset, then throttled", answers: []answer{broken(errReset), status(429), status(429)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "reset, then forbidden", answers: []answer{broken(errReset), status(403), status(403)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "too few results", answers: []answer{stored(1), stored(1), stored(1)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},

	// An attempt whose reply was lost had stored it: the own event is there.
	{name: "reset, own event", answers: []answer{broken(errReset), refused(409, 424), found(anEvent, `"r0"`), found(asStored, `"r1"`)}, etags: []azcore.ETag{`"r0"`, `"r1"`}},
	{name: "cut reply, own event", answers: []answer{respond(200, `[{"statusCode":20`), refused(409, 424), found(anEvent, `"r0"`), found(asStored, `"r1"`)}, etags: []azcore.ETag{`"r0"`, `"r1"`}},
	{name: "own event at once", answers: []answer{refused(409, 424), found(anEvent, `"r0"`), found(asStored, `"r1"`)}, etags: []azcore.ETag{`"r0"`, `"r1"`}},
	{name: "own event, contact changed since", answers: []answer{status(500), refused(409, 424), found(anEvent, `"r0"`), found(changed, `"r1"`)}, etags: []azcore.ETag{`"r0"`, ""}},
	{name: "own event, contact vanished since", answers: []answer{status(500), refused(409, 424), found(anEvent, `"r0"`), missing()}, etags: []azcore.ETag{`"r0"`, ""}},
	{name: "own event, reading back fails once", answers: []answer{
		status(500), refused(409, 424), status(500),
		refused(409, 424), found(anEvent, `"r0"`), found(asStored, `"r1"`),
	}, etags: []azcore.ETag{`"r0"`, `"r1"`}},
	{name: "own event, reading back fails", answers: []answer{
		refused(409, 424), status(500), refused(409, 424), status(500), refused(409, 424), status(500),
	}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "foreign event of that id", answers: []answer{refused(409, 424), found(DataObject{ID: "event", Data: json.RawMessage(`{"n":2}`)}, `"r0"`)}, kind: fault.Conflict},
	{name: "event of that id vanished", answers: []answer{refused(409, 424), missing()}, kind: fault.Conflict},
}

func TestOutcomesOfACommit(t *testing.T) {
	for _, test := range outcomes {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test.run(t) })
		})
	}
}

func (test outcomeCase) run(t *testing.T) {
	container, s := play(t, test.answers...)
	options, _ := (*Options)(nil).withDefaults()
	c := newContainerContext(container, options, store.Session{})
	if err := errors.Join(c.Update(aContact), c.Create(anEvent)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of a silence that is never given up
	defer cancel()
	saved, err := c.Save(ctx)
	if len(s.answers) > 0 {
		t.Errorf("%d answers of the script are left", len(s.answers))
	}
	for i, body := range s.bodies {
		if strings.Contains(body, `"Create"`) && body != s.bodies[0] {
			t.Errorf("attempt %d sent something else:\n%s\n%s", i, body, s.bodies[0])
		}
	}
	if test.etags == nil {
		test.checkFault(t, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var etags []azcore.ETag
	for _, o := range saved {
		etags = append(etags, o.ETag)
	}
	if saved[0].ID != anEvent.ID || saved[1].ID != aContact.ID || !slices.Equal(etags, test.etags) {
		t.Errorf("saved %v; want the event and the contact with %v", saved, test.etags)
	}
}

func (test outcomeCase) checkFault(t *testing.T, err error) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != test.kind || (test.code != "" && f.Code != test.code) || f.RetryAfter != test.retry {
		t.Errorf("error %v; want %s %s, retry after %s", err, test.kind, test.code, test.retry)
	}
}

// pointCase is a transaction of one operation.
type pointCase struct {
	name    string
	verb    verb
	answers []answer
	etag    azcore.ETag
	kind    fault.Kind
	fails   bool
}

func TestOutcomesOfAPointWrite(t *testing.T) {
	ok := func(code int) answer { return respond(code, "", "etag", `"new"`, store.HeaderSession, "0:-1#3") }
	for _, test := range []pointCase{
		{name: "created", verb: verbCreate, answers: []answer{ok(201)}, etag: `"new"`},
		{name: "replaced", verb: verbReplace, answers: []answer{ok(200)}, etag: `"new"`},
		{name: "exists", verb: verbCreate, answers: []answer{status(409)}, kind: fault.Conflict, fails: true},
		{name: "lost race", verb: verbReplace, answers: []answer{status(412)}, kind: fault.PreconditionFailed, fails: true},
		{name: "not there", verb: verbReplace, answers: []answer{status(404)}, kind: fault.NotFound, fails: true},
		{name: "create, reset, own", verb: verbCreate, answers: []answer{broken(errReset), status(409), found(asStored, `"r"`)}, etag: `"r"`},
		{name: "create, reset, foreign", verb: verbCreate, answers: []answer{broken(errReset), status(409), found(changed, `"r"`)}, kind: fault.Conflict, fails: true},
		{name: "replace, reset, own", verb: verbReplace, answers: []answer{broken(errReset), status(412), found(asStored, `"r"`)}, etag: `"r"`},
		{name: "replace, reset, foreign", verb: verbReplace, answers: []answer{broken(errReset), status(412), found(changed, `"r"`)}, kind: fault.PreconditionFailed, fails: true},
		{name: "replace, reset, vanished", verb: verbReplace, answers: []answer{broken(errReset), status(404), missing()}, kind: fault.NotFound, fails: true},
		{name: "deleted", verb: verbDelete, answers: []answer{respond(204, "")}},
		{name: "delete, lost race", verb: verbDelete, answers: []answer{status(412)}, kind: fault.PreconditionFailed, fails: true},
		{name: "delete, not there", verb: verbDelete, answers: []answer{status(404)}, kind: fault.NotFound, fails: true},
		{name: "delete, reset, gone", verb: verbDelete, answers: []answer{broken(errReset), status(404), missing()}},
		{name: "delete, reset, changed", verb: verbDelete, answers: []answer{broken(errReset), status(412), found(changed, `"r"`)}, kind: fault.PreconditionFailed, fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				container, s := play(t, test.answers...)
				options, _ := (*Options)(nil).withDefaults()
				c := newContainerContext(container, options, store.Session{})
				if err := c.track(test.verb, aContact, nil); err != nil {
					t.Fatal(err)
				}
				saved, err := c.Save(t.Context())
				if len(s.answers) > 0 {
					t.Errorf("%d answers of the script are left", len(s.answers))
				}
				wantMatch := string(aContact.ETag)
				if test.verb == verbCreate {
					wantMatch = ""
				}
				r := s.requests[0]
				if want := []string{"POST", "PUT", "DELETE"}[test.verb]; r.Method != want || r.Header.Get("If-Match") != wantMatch {
					t.Errorf("sent %s with If-Match %q; want %s with %q", r.Method, r.Header.Get("If-Match"), want, wantMatch)
				}
				switch {
				case test.fails && !fault.Is(err, test.kind):
					t.Errorf("error %v; want %s", err, test.kind)
				case !test.fails && (err != nil || len(saved) != 1 || saved[0].ETag != test.etag):
					t.Errorf("saved %v, %v; want the ETag %s", saved, err, test.etag)
				}
			})
		})
	}
}

func TestACommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		container, s := play(t, silent)
		options, _ := (*Options)(nil).withDefaults()
		c := newContainerContext(container, options, store.Session{})
		if err := errors.Join(c.Create(anEvent), c.Update(aContact)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Save(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s", took)
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != CodeOutcomeUnknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v; want %s for the deadline", err, CodeOutcomeUnknown)
		}
		_, err = c.Save(ctx) // it has ended already
		if !errors.As(err, &f) || f.Code == CodeOutcomeUnknown || len(s.bodies) != 1 {
			t.Errorf("error %v after %d requests; want none sent", err, len(s.bodies))
		}
	})
}

func TestAThrottledCommitWaitsAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		container, _ := play(t, status(429, store.HeaderRetryAfter, "1500"), stored(2))
		options, _ := (*Options)(nil).withDefaults()
		c := newContainerContext(container, options, store.Session{})
		if err := errors.Join(c.Create(anEvent), c.Update(aContact)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %s; want 1.5 s", took)
		}
	})
}

// A failed commit tells the session too: what was seen must be seen by the next read.
func TestSaveKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		container, _ := play(t, status(500, store.HeaderSession, "1:-1#4"), refused(424, http.StatusPreconditionFailed))
		options, _ := (*Options)(nil).withDefaults()
		token, _ := store.ParseSession("0:-1#2")
		c := newContainerContext(container, options, token)
		if err := errors.Join(c.Create(anEvent), c.Update(aContact)); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Save(t.Context())
		if got := c.session.String(); got != "0:-1#9,1:-1#4" {
			t.Errorf("session %q", got)
		}
	})
}

// A failed attempt is followed by another one after a wait that doubles. A negative
// Backoff waits for nothing, however many attempts there are.
func TestTheWaitsBetweenAttempts(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		options     Options
		least, most []time.Duration
	}{
		{Options{}, []time.Duration{25 * ms, 50 * ms}, []time.Duration{50 * ms, 100 * ms}},
		{Options{Attempts: 5, Backoff: 4 * time.Second}, []time.Duration{2e9, 4e9, 8e9, 16e9}, []time.Duration{4e9, 8e9, 16e9, 32e9}},
		{Options{Attempts: 3, Backoff: -1}, []time.Duration{0, 0}, []time.Duration{0, 0}},
		{Options{Attempts: 80, Backoff: -1}, make([]time.Duration, 79), make([]time.Duration, 79)},
	} {
		synctest.Test(t, func(t *testing.T) {
			options, _ := test.options.withDefaults()
			var at []time.Time
			answers := make([]answer, options.Attempts)
			for i := range answers {
				answers[i] = func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Now())
					return status(500)(r)
				}
			}
			container, _ := play(t, answers...)
			c := newContainerContext(container, options, store.Session{})
			if err := c.Create(anEvent); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Save(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			if len(at) != options.Attempts {
				t.Fatalf("%d attempts; want %d", len(at), options.Attempts)
			}
			for i, least := range test.least {
				if wait := at[i+1].Sub(at[i]); wait < least || wait > test.most[i] {
					t.Errorf("wait %d is %s; want %s to %s", i+1, wait, least, test.most[i])
				}
			}
		})
	}
}

// An attempt that nobody answers ends after AttemptTimeout, or with the caller's context
// where that is negative.
func TestHowLongAnAttemptLasts(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 8 * time.Second, time.Second: time.Second, -1: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			container, _ := play(t, silent)
			options, _ := (&Options{AttemptTimeout: timeout, Attempts: 1}).withDefaults()
			c := newContainerContext(container, options, store.Session{})
			if err := c.Create(anEvent); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if _, err := c.Save(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("AttemptTimeout %s: it took %s; want %s", timeout, took, want)
			}
		})
	}
}
