package query_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

var (
	id  = uuid.MustParse("b5e2e7aa-4982-4735-9422-c39a7c4af5c2")
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// reader answers with one contact and notes what it was asked.
type reader struct {
	state       contact.State
	etag        string
	ifNoneMatch string
	size        int
}

func (r *reader) Read(_ context.Context, id uuid.UUID, ifNoneMatch, session string) (query.Found, error) {
	r.ifNoneMatch = ifNoneMatch
	if id != r.state.ID {
		return query.Found{}, contact.NotFound(id)
	}
	if ifNoneMatch == r.etag {
		return query.Found{}, fault.New(fault.NotModified, "", "same")
	}
	return query.Found{State: r.state, ETag: r.etag, SessionToken: session + "+"}, nil
}

func (r *reader) Page(_ context.Context, size int, continuation, session string) (query.ContactPage, error) {
	r.size = size
	return query.ContactPage{Continuation: continuation + "+", SessionToken: session + "+"}, nil
}

func app(t *testing.T) (*mediator.Mediator, *reader) {
	t.Helper()
	r := &reader{etag: `"v1"`, state: contact.State{
		ID: id, FirstName: "John", LastName: "Doe", Email: "john@contoso.com",
		Company: contact.CompanyFields{CompanyName: "Contoso"}, CreatedAt: now, ModifiedAt: now, Version: 2, Sequence: 2,
	}}
	m := mediator.New()
	if err := query.Register(m, query.Ports{Contacts: r}); err != nil {
		t.Fatal(err)
	}
	return m, r
}

func TestReadContact(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	out, err := mediator.Send(t.Context(), m, query.ReadContact{ContactID: id, SessionToken: "s"})
	if err != nil {
		t.Fatal(err)
	}
	email := "john@contoso.com"
	want := query.ContactRead{
		Contact: query.Contact{
			ID: id, FirstName: "John", LastName: "Doe", Email: &email,
			Company: contact.CompanyFields{CompanyName: "Contoso"}, CreatedAt: now, ModifiedAt: &now, Version: 2,
		},
		ETag: `"v1"`, SessionToken: "s+",
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestReadContactConditions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ifNoneMatch []string
		asked       string // what the store compares
		kind        fault.Kind
		found       bool
	}{
		"none":            {nil, "", 0, true},
		"the same":        {[]string{`"v1"`}, `"v1"`, fault.NotModified, false},
		"another":         {[]string{`"v0"`}, `"v0"`, 0, true},
		"a list with it":  {[]string{`"v0"`, `"v1"`}, "", fault.NotModified, false},
		"a list without":  {[]string{`"v0"`, `"v2"`}, "", 0, true},
		"any":             {[]string{"*"}, "", fault.NotModified, false},
		"any in its list": {[]string{`"v0"`, "*"}, "", fault.NotModified, false},
	} {
		m, r := app(t)
		_, err := mediator.Send(t.Context(), m, query.ReadContact{ContactID: id, IfNoneMatch: test.ifNoneMatch})
		if test.found != (err == nil) || (err != nil && !fault.Is(err, test.kind)) {
			t.Errorf("%s: %v", name, err)
		}
		if r.ifNoneMatch != test.asked {
			t.Errorf("%s: the store was asked with %q; want %q", name, r.ifNoneMatch, test.asked)
		}
	}
}

func TestReadContactHidesDeletedOnes(t *testing.T) {
	t.Parallel()
	m, r := app(t)
	r.state.Deleted = true
	for _, in := range []query.ReadContact{{ContactID: id}, {ContactID: id, IfNoneMatch: []string{"*"}}, {ContactID: uuid.New()}} {
		if _, err := mediator.Send(t.Context(), m, in); !fault.Is(err, fault.NotFound) {
			t.Errorf("%+v: %v; want not found", in, err)
		}
	}
}

func TestReadContactsPageSize(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]int{0: 10, 1: 1, 100: 100, -1: 0, 101: 0} {
		m, r := app(t)
		out, err := mediator.Send(t.Context(), m, query.ReadContacts{PageSize: asked, Continuation: "c", SessionToken: "s"})
		if want == 0 {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("page size %d: %v; want invalid", asked, err)
			}
			continue
		}
		if err != nil || r.size != want || out.Continuation != "c+" || out.SessionToken != "s+" {
			t.Errorf("page size %d: %+v, %v; the store was asked for %d", asked, out, err, r.size)
		}
	}
}
