package contacts_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
)

// trail is an audit trail of one contact.
type trail struct {
	contactID uuid.UUID
	entries   []query.AuditEntry
	next      string
	size      int
}

func (a *trail) Audit(_ context.Context, contactID uuid.UUID, size int, _, session string) (query.AuditPage, error) {
	a.size = size
	if contactID != a.contactID {
		return query.AuditPage{SessionToken: session}, nil
	}
	return query.AuditPage{Entries: a.entries, Continuation: a.next, SessionToken: session}, nil
}

func TestReadAudit(t *testing.T) {
	t.Parallel()
	gone := uuid.New() // its contact has expired, its trail has not
	for name, test := range map[string]struct {
		in    contacts.ReadAudit
		kind  fault.Kind
		count int
	}{
		"a contact without a trail": {contacts.ReadAudit{Trail: query.Trail{ID: id}}, 0, 0},
		"a trail without a contact": {contacts.ReadAudit{Trail: query.Trail{ID: gone}}, 0, 1},
		"neither":                   {contacts.ReadAudit{Trail: query.Trail{ID: uuid.New()}}, fault.NotFound, 0},
		"the end of a trail":        {contacts.ReadAudit{Trail: query.Trail{ID: uuid.New(), Continuation: "c"}}, 0, 0},
		"too large a page":          {contacts.ReadAudit{Trail: query.Trail{ID: gone, PageSize: 101}}, fault.Invalid, 0},
	} {
		m := mediator.New()
		audit := &trail{contactID: gone, entries: []query.AuditEntry{{Version: 1}}}
		stored := &reader{etag: `"v1"`}
		stored.state.ID = id
		if err := contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: stored, Audit: audit}); err != nil {
			t.Fatal(err)
		}
		page, err := mediator.Send(t.Context(), m, test.in)
		if (err != nil) != (test.kind != 0) || (err != nil && !fault.Is(err, test.kind)) || len(page.Entries) != test.count {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
		if err == nil && audit.size != query.DefaultPageSize {
			t.Errorf("%s: the page size is %d; want the default", name, audit.size)
		}
	}
}

// The first page of a store may be empty although others follow.
func TestEmptyPageOfATrailIsNotItsEnd(t *testing.T) {
	t.Parallel()
	gone := uuid.New()
	page, err := query.ReadTrail(t.Context(), &trail{contactID: gone, next: "c"}, &reader{}, query.Trail{ID: gone})
	if err != nil || page.Continuation != "c" {
		t.Errorf("%+v, %v; want the continuation", page, err)
	}
}

func TestReadAuditHasNoHandlerWithoutReader(t *testing.T) {
	t.Parallel()
	m, _ := queries(t)
	if _, err := mediator.Send(t.Context(), m, contacts.ReadAudit{Trail: query.Trail{ID: id}}); err == nil {
		t.Error("answered")
	}
}
