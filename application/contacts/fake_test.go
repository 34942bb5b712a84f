package contacts_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// store is a container of contacts in memory with optimistic concurrency. It is not safe for
// concurrent use.
type store struct {
	states map[uuid.UUID]contact.State
	events []event.Event
	// before runs before each commit. Tests use it to win a race.
	before   func()
	begun    int
	answered map[string]command.Request
	audit    []query.AuditEntry
	session  []string // session tokens given to Begin
}

func etagOf(s contact.State) string { return fmt.Sprintf(`"v%d"`, s.Version) }

func (s *store) Begin(session string) (command.UnitOfWork[*contact.Contact], error) {
	if session == "broken" {
		return nil, fault.New(fault.Invalid, "invalid_session_token", "broken")
	}
	s.begun++
	s.session = append(s.session, session)
	return &work{store: s}, nil
}

type work struct {
	store   *store
	c       *contact.Contact
	etag    string
	request *command.Request
	audit   []query.AuditEntry
}

func (w *work) NoteRequest(r command.Request) error {
	w.request = &r
	return nil
}

func (w *work) FindRequest(_ context.Context, contactID uuid.UUID, id string) (command.Request, error) {
	if r, ok := w.store.answered[contactID.String()+id]; ok {
		return r, nil
	}
	return command.Request{}, fault.New(fault.NotFound, "", "no such request")
}

func (w *work) NoteAudit(e query.AuditEntry) error {
	w.audit = append(w.audit, e)
	return nil
}

func (w *work) SessionToken() string { return fmt.Sprintf("0:-1#%d", len(w.store.events)) }

func (w *work) Add(_ context.Context, c *contact.Contact) error {
	w.c = c
	return nil
}

func (w *work) Read(_ context.Context, id uuid.UUID, ifMatch []string) (*contact.Contact, error) {
	state, ok := w.store.states[id]
	if !ok {
		return nil, contact.NotFound(id)
	}
	w.etag = etagOf(state)
	if !state.Deleted && len(ifMatch) > 0 && !slices.Contains(ifMatch, "*") && !slices.Contains(ifMatch, w.etag) {
		return nil, fault.New(fault.PreconditionFailed, "", "changed")
	}
	c, err := contact.Rehydrate(state)
	w.c = c
	return c, err
}

func (w *work) Commit(context.Context) (command.Receipt, error) {
	if w.store.before != nil {
		w.store.before()
	}
	commit, changed := w.c.Pending()
	if w.request != nil {
		key := w.request.AggregateID.String() + w.request.ID
		if _, repeated := w.store.answered[key]; repeated {
			return command.Receipt{}, fault.New(fault.Conflict, "", "answered before")
		}
	}
	if now := w.store.states[w.c.ID()]; !commit.Create && changed && etagOf(now) != w.etag {
		return command.Receipt{}, fault.New(fault.PreconditionFailed, "", "changed")
	}
	if w.request != nil {
		w.store.answered[w.request.AggregateID.String()+w.request.ID] = *w.request
	}
	if !changed {
		return command.Receipt{ETag: w.etag, SessionToken: w.SessionToken()}, nil
	}
	if _, exists := w.store.states[w.c.ID()]; commit.Create && exists {
		return command.Receipt{}, fault.New(fault.Conflict, "", "exists")
	}
	w.store.states[w.c.ID()] = w.c.StateAt(commit)
	w.store.events = append(w.store.events, commit.Events...)
	w.store.audit = append(w.store.audit, w.audit...)
	w.c.Committed(commit)
	return command.Receipt{ETag: etagOf(w.c.StateAt(commit)), SessionToken: w.SessionToken()}, nil
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// app returns a mediator with all commands over an empty store.
func app(t *testing.T) (*mediator.Mediator, *store) {
	t.Helper()
	s := &store{states: map[uuid.UUID]contact.State{}, answered: map[string]command.Request{}}
	m := mediator.New()
	ports := contacts.CommandPorts{Work: s, IDs: uuid.New, Now: func() time.Time { return now }, Audit: true}
	if err := contacts.RegisterCommands(m, ports); err != nil {
		t.Fatal(err)
	}
	return m, s
}

// created returns the id of a contact that was just created.
func created(t *testing.T, m *mediator.Mediator) uuid.UUID {
	t.Helper()
	out, err := mediator.Send(t.Context(), m, john())
	if err != nil {
		t.Fatal(err)
	}
	return out.Contact.ID
}

func john() contacts.CreateContact {
	return contacts.CreateContact{FirstName: "John", LastName: "Doe", Company: contact.CompanyFields{CompanyName: "Contoso"}}
}

func text(s string) *string { return &s }
