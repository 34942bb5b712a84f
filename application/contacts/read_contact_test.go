package contacts_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

var id = uuid.MustParse("b5e2e7aa-4982-4735-9422-c39a7c4af5c2")

// reader returns one contact and records its arguments.
type reader struct {
	state       contact.State
	etag        string
	ifNoneMatch string
	size        int
}

func (r *reader) Read(_ context.Context, id uuid.UUID, ifNoneMatch, session string) (query.Found[contact.State], error) {
	r.ifNoneMatch = ifNoneMatch
	if id != r.state.ID {
		return query.Found[contact.State]{}, contact.NotFound(id)
	}
	if ifNoneMatch == r.etag {
		return query.Found[contact.State]{}, fault.New(fault.NotModified, "", "same")
	}
	return query.Found[contact.State]{State: r.state, Deleted: r.state.Deleted, ETag: r.etag, SessionToken: session + "+"}, nil
}

func (r *reader) Page(_ context.Context, size int, continuation, session string) (contacts.ContactPage, error) {
	r.size = size
	return contacts.ContactPage{Continuation: continuation + "+", SessionToken: session + "+"}, nil
}

func queries(t *testing.T) (*mediator.Mediator, *reader) {
	t.Helper()
	r := &reader{etag: `"v1"`, state: contact.State{
		ID: id, FirstName: "John", LastName: "Doe", Email: "john@contoso.com",
		Company: contact.CompanyFields{CompanyName: "Contoso"}, CreatedAt: now, ModifiedAt: now, Version: 2, Sequence: 2,
	}}
	m := mediator.New()
	if err := contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: r}); err != nil {
		t.Fatal(err)
	}
	return m, r
}

func TestReadContact(t *testing.T) {
	t.Parallel()
	m, _ := queries(t)
	out, err := mediator.Send(t.Context(), m, contacts.ReadContact{Read: query.Read{ID: id, SessionToken: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	email := "john@contoso.com"
	want := contacts.ContactRead{
		Contact: contacts.Contact{
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
		asked       string // the ETag that the store compares
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
		m, r := queries(t)
		_, err := mediator.Send(t.Context(), m, contacts.ReadContact{Read: query.Read{ID: id, IfNoneMatch: test.ifNoneMatch}})
		if test.found != (err == nil) || (err != nil && !fault.Is(err, test.kind)) {
			t.Errorf("%s: %v", name, err)
		}
		if r.ifNoneMatch != test.asked {
			t.Errorf("%s: the store was asked with %q; want %q", name, r.ifNoneMatch, test.asked)
		}
	}
}

func TestDeletedContactIsNotFound(t *testing.T) {
	t.Parallel()
	m, r := queries(t)
	r.state.Deleted = true
	for _, in := range []query.Read{{ID: id}, {ID: id, IfNoneMatch: []string{"*"}}, {ID: uuid.New()}} {
		if _, err := mediator.Send(t.Context(), m, contacts.ReadContact{Read: in}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%+v: %v; want not found", in, err)
		}
	}
}

func TestReadContactsPageSize(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]int{0: 10, 1: 1, 100: 100, -1: 0, 101: 0} {
		m, r := queries(t)
		out, err := mediator.Send(t.Context(), m, contacts.ReadContacts{PageSize: asked, Continuation: "c", SessionToken: "s"})
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
