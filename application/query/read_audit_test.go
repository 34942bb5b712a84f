package query_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
)

// trail is an audit trail of one contact.
type trail struct {
	contactID uuid.UUID
	entries   []query.AuditEntry
	size      int
}

func (a *trail) Audit(_ context.Context, contactID uuid.UUID, size int, _, session string) (query.AuditPage, error) {
	a.size = size
	if contactID != a.contactID {
		return query.AuditPage{SessionToken: session}, nil
	}
	return query.AuditPage{Entries: a.entries, SessionToken: session}, nil
}

func TestReadAudit(t *testing.T) {
	t.Parallel()
	gone := uuid.New() // its contact has expired, its trail has not
	for name, test := range map[string]struct {
		in    query.ReadAudit
		kind  fault.Kind
		count int
	}{
		"a contact without a trail": {query.ReadAudit{ContactID: id}, 0, 0},
		"a trail without a contact": {query.ReadAudit{ContactID: gone}, 0, 1},
		"neither":                   {query.ReadAudit{ContactID: uuid.New()}, fault.NotFound, 0},
		"the end of a trail":        {query.ReadAudit{ContactID: uuid.New(), Continuation: "c"}, 0, 0},
		"too large a page":          {query.ReadAudit{ContactID: gone, PageSize: 101}, fault.Invalid, 0},
	} {
		m := mediator.New()
		audit := &trail{contactID: gone, entries: []query.AuditEntry{{Version: 1}}}
		contacts := &reader{etag: `"v1"`}
		contacts.state.ID = id
		if err := query.Register(m, query.Ports{Contacts: contacts, Audit: audit}); err != nil {
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

func TestWithoutAnAuditReaderTheQueryIsNotAnswered(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	if _, err := mediator.Send(t.Context(), m, query.ReadAudit{ContactID: id}); err == nil {
		t.Error("answered")
	}
}
