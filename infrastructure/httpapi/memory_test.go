package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// memory implements the application's ports in memory, so that tests can cause every fault.
// The tests on the emulator use the real adapter.
type memory struct {
	mu       sync.Mutex // guards all below
	contacts map[uuid.UUID]stored
	writes   int
	actions  []string // of all events, in order
	sessions []string // tokens that came in
	fail     error    // returned by every port call
	hold     chan struct{}
	queried  func()        // called once, after the next query for a contact
	entered  chan struct{} // gets a value as a request begins to be held
}

type stored struct {
	state contact.State
	etag  string
}

func newMemory() *memory { return &memory{contacts: map[uuid.UUID]stored{}} }

func (m *memory) failWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// enter waits while the test holds requests, and returns the fault set by the test.
func (m *memory) enter(ctx context.Context, session string) error {
	m.mu.Lock()
	hold, fail, entered := m.hold, m.fail, m.entered
	if session != "" {
		m.sessions = append(m.sessions, session)
	}
	m.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fail
}

func (m *memory) Begin(session string) (command.UnitOfWork[*contact.Contact], error) {
	return &memoryWork{memory: m, session: session}, nil
}

// memoryWork is a unit of work of one contact.
type memoryWork struct {
	command.Journal // nil: no request of these tests has a key
	memory          *memory
	session         string
	contact         *contact.Contact
	etag            string
}

func (w *memoryWork) SessionToken() string { return w.session }

func (w *memoryWork) Add(_ context.Context, c *contact.Contact) error {
	w.contact = c
	return nil
}

func (w *memoryWork) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (*contact.Contact, error) {
	if err := w.memory.enter(ctx, w.session); err != nil {
		return nil, err
	}
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	found, ok := w.memory.contacts[id]
	if !ok {
		return nil, contact.NotFound(id)
	}
	if !found.state.Deleted && len(ifMatch) > 0 && !slices.Contains(ifMatch, "*") && !slices.Contains(ifMatch, found.etag) {
		return nil, fault.New(fault.PreconditionFailed, "", "the contact has changed")
	}
	c, err := contact.Rehydrate(found.state)
	w.contact, w.etag = c, found.etag
	return c, err
}

func (w *memoryWork) Commit(ctx context.Context) (command.Receipt, error) {
	if err := w.memory.enter(ctx, ""); err != nil {
		return command.Receipt{}, err
	}
	m := w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	commit, pending := w.contact.Pending()
	if !pending {
		return command.Receipt{ETag: w.etag, SessionToken: w.session}, nil
	}
	if found, ok := m.contacts[w.contact.ID()]; ok && found.etag != w.etag {
		return command.Receipt{}, fault.New(fault.PreconditionFailed, "", "the contact has changed")
	}
	m.writes++
	etag := fmt.Sprintf(`"%08d"`, m.writes)
	m.contacts[w.contact.ID()] = stored{w.contact.StateAt(commit), etag}
	for _, e := range commit.Events {
		m.actions = append(m.actions, e.Action())
	}
	w.contact.Committed(commit)
	w.session = "0:-1#" + strconv.Itoa(m.writes)
	return command.Receipt{ETag: etag, SessionToken: w.session}, nil
}

// memoryReader is the read side.
type memoryReader struct{ *memory }

func (m memoryReader) Read(ctx context.Context, id uuid.UUID, ifNoneMatch, session string) (query.Found[contact.State], error) {
	if err := m.enter(ctx, session); err != nil {
		return query.Found[contact.State]{}, err
	}
	m.mu.Lock()
	found, ok := m.contacts[id]
	queried := m.queried
	m.queried = nil
	defer func() {
		m.mu.Unlock()
		if queried != nil {
			queried()
		}
	}()
	switch {
	case !ok:
		return query.Found[contact.State]{}, contact.NotFound(id)
	case found.etag == ifNoneMatch:
		return query.Found[contact.State]{}, fault.New(fault.NotModified, "", "the contact has not changed")
	}
	return query.Found[contact.State]{State: found.state, Deleted: found.state.Deleted, ETag: found.etag, SessionToken: "0:-1#" + strconv.Itoa(m.writes)}, nil
}

func (m memoryReader) Page(ctx context.Context, size int, continuation, session string) (contacts.ContactPage, error) {
	if err := m.enter(ctx, session); err != nil {
		return contacts.ContactPage{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var after string
	if continuation != "" {
		if err := json.Unmarshal([]byte(continuation), &after); err != nil {
			return contacts.ContactPage{}, fault.New(fault.Invalid, "invalid_continuation", "the continuation is malformed")
		}
	}
	var ids []string
	for id, found := range m.contacts {
		if !found.state.Deleted && strings.Compare(id.String(), after) > 0 {
			ids = append(ids, id.String())
		}
	}
	slices.Sort(ids)
	page := contacts.ContactPage{}
	for _, id := range ids[:min(size, len(ids))] {
		found := m.contacts[uuid.MustParse(id)]
		view := contacts.NewContact(found.state)
		page.Items = append(page.Items, contacts.ContactItem{
			ID: view.ID, Email: view.Email, FullName: found.state.FullName(), CompanyName: view.Company.CompanyName, ETag: found.etag,
		})
	}
	if len(ids) > size {
		last, _ := json.Marshal(ids[size-1])
		page.Continuation = string(last)
	}
	return page, nil
}

// clock is fixed, because no test of this package depends on the current time.
func clock() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
