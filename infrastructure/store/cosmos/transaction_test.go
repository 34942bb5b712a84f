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

// outcomeCase is one commit of an event and a contact, given by the answers to its requests.
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
	{name: "region refuses writes", answers: slices.Repeat([]answer{status(403, "x-ms-substatus", "3")}, maxRegionRefusals), kind: fault.Unavailable, code: "store_unavailable", retry: 5 * time.Second},
	{name: "region removed", answers: slices.Repeat([]answer{status(403, "x-ms-substatus", "1008")}, maxRegionRefusals), kind: fault.Unavailable, code: "store_unavailable", retry: 5 * time.Second},
	{name: "forbidden", answers: []answer{status(403)}, kind: fault.Internal},
	{name: "bad request", answers: []answer{status(400), status(503)}, kind: fault.Internal}, // the second is to the read of the container

	// Refused for the moment: nothing was written, retry.
	{name: "throttled, then stored", answers: []answer{status(429, store.HeaderRetryAfter, "1500"), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "an operation throttled, then stored", answers: []answer{refused(424, 429), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "throttled for long", answers: []answer{status(429, store.HeaderRetryAfter, "60000")}, kind: fault.Throttled, retry: time.Minute},
	{name: "throttled for ever", answers: []answer{status(429), status(429), status(429, store.HeaderRetryAfter, "70")}, kind: fault.Throttled, retry: 70 * time.Millisecond},
	{name: "concurrent write, then stored", answers: []answer{status(449), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "partition moves, then stored", answers: []answer{status(410), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "connection refused", answers: []answer{broken(errRefuse), broken(errRefuse), broken(errRefuse), broken(errRefuse)}, kind: fault.Unavailable, code: "store_unavailable"},

	// The outcome is unknown: retry the same.
	{name: "server error, then stored", answers: []answer{status(500), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "unavailable, then stored", answers: []answer{status(503), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "time-out, then stored", answers: []answer{status(408), stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "silence, then stored", answers: []answer{silent, stored(2)}, etags: []azcore.ETag{`"e0"`, `"e1"`}},
	{name: "reset, then lost race", answers: []answer{broken(errReset), refused(424, 412)}, kind: fault.PreconditionFailed},
	{name: "reset, then taken id", answers: []answer{broken(errReset), refused(424, 409)}, kind: fault.Conflict},
	{name: "no answer at all", answers: []answer{status(500), broken(io.ErrUnexpectedEOF), status(504)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "time-outs", answers: slices.Repeat([]answer{status(408)}, 3), kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "gateway fails", answers: slices.Repeat([]answer{status(502)}, 3), kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "unavailable for long", answers: slices.Repeat([]answer{status(503)}, 3), kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "reset, then throttled", answers: []answer{broken(errReset), status(429), status(429)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "reset, then forbidden", answers: []answer{broken(errReset), status(403), status(403)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},
	{name: "too few results", answers: []answer{stored(1), stored(1), stored(1)}, kind: fault.Unavailable, code: CodeOutcomeUnknown},

	// An attempt with a lost reply was stored: the own event exists.
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
	options, _ := withDefaults(nil)
	c := newContainerContext(container, options, store.Session{})
	if err := errors.Join(c.Update(aContact), c.Create(anEvent)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // limits a silence that never times out
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
		{name: "replace, time-out, own", verb: verbReplace, answers: []answer{status(408), status(412), found(asStored, `"r"`)}, etag: `"r"`},
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
				options, _ := withDefaults(nil)
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

// A failed commit also updates the session, so that the next read is not older.
func TestSaveKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		container, _ := play(t, status(500, store.HeaderSession, "1:-1#4"), refused(424, http.StatusPreconditionFailed))
		options, _ := withDefaults(nil)
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

func TestApplied(t *testing.T) {
	t.Parallel()
	const sent = `{"id":"i","a":"é","n":1,"ttl":60}`
	for name, test := range map[string]struct {
		verb         verb
		sent, stored string // nothing stored: it is gone
		want         bool
	}{
		"created, as it was sent":         {verbCreate, sent, sent, true},
		"replaced, as it was sent":        {verbReplace, sent, sent, true},
		"spaced and escaped by the store": {verbCreate, sent, `{ "n":1.0, "ttl":60, "a":"\u00e9", "id":"i" }`, true},
		"with what the store adds":        {verbCreate, sent, `{"id":"i","a":"é","n":1,"ttl":60,"_rid":"r","_self":"s","_etag":"e","_attachments":"x","_ts":7,"_lsn":8}`, true},
		"replaced, unchanged":             {verbReplace, `{"id":"i","_etag":"old","_ts":6}`, `{"id":"i","_etag":"new","_ts":7}`, true},
		"another value":                   {verbReplace, sent, `{"id":"i","a":"e","n":1,"ttl":60}`, false},
		"another lifetime":                {verbReplace, sent, `{"id":"i","a":"é","n":1,"ttl":61}`, false},
		"one member more":                 {verbReplace, sent, `{"id":"i","a":"é","n":1,"ttl":60,"_mine":1}`, false},
		"one member less":                 {verbReplace, sent, `{"id":"i","a":"é","n":1}`, false},
		"no object":                       {verbReplace, sent, `[]`, false},
		"created, gone":                   {verbCreate, sent, "", false},
		"replaced, gone":                  {verbReplace, sent, "", false},
		"deleted, gone":                   {verbDelete, "", "", true},
		"deleted, still there":            {verbDelete, "", sent, false},
		"deleted, an empty object there":  {verbDelete, "", `{}`, false},
	} {
		op := operation{verb: test.verb, body: []byte(test.sent)}
		if got := op.applied([]byte(test.stored), test.stored == ""); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
