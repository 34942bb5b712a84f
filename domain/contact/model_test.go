package contact_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// model is the expected behaviour of the aggregate.
type model struct {
	c    *contact.Contact
	now  time.Time
	want map[string]string // the value of each part

	deleted  bool
	version  int64
	actions  []string // recorded since the last commit, in order of their first event
	log      []event.Event
	eventIDs int
}

// The verbs are called in random order, with commits that succeed or fail, and with contacts
// restored from the stored state. After each commit the version has risen by one, the
// sequence has no gap, and there is one event per action, in order. Reproduce a failure with
// -rapid.seed, which the report prints.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"name":        m.updateName,
			"description": m.updateDescription,
			"email":       m.updateEmail,
			"company":     m.updateCompany,
			"delete":      m.delete,
			"commit":      m.commit,
			"fail":        m.failedCommit,
			"rehydrate":   m.rehydrate,
		})
	})
}

func newModel(t *rapid.T) *model {
	m := &model{now: start, want: map[string]string{"name": "John", "description": "", "email": "", "company": "Contoso"}}
	c, err := contact.New(exampleID, exampleDetails(), m.nextID(), m.now)
	if err != nil {
		t.Fatal(err)
	}
	m.c, m.actions = c, []string{contact.ActionCreated}
	return m
}

// nextID returns an id derived from a counter, so that runs with the same seed are equal.
func (m *model) nextID() uuid.UUID {
	m.eventIDs++
	return uuid.NewSHA1(exampleID, []byte(fmt.Sprint(m.eventIDs)))
}

// changed checks a verb's answer against the model and notes what it must record.
func (m *model) changed(t *rapid.T, err error, part, value, action string) {
	m.now = m.now.Add(time.Second)
	if m.deleted {
		if !fault.Is(err, fault.NotFound) {
			t.Fatalf("a verb on a deleted contact: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.want[part] == value {
		return
	}
	m.want[part] = value
	if m.version > 0 && !slices.Contains(m.actions, action) {
		m.actions = append(m.actions, action)
	}
}

func (m *model) updateName(t *rapid.T) {
	first := rapid.SampledFrom([]string{"John", "Jane", "Joan"}).Draw(t, "first")
	n, _ := contact.NewName(first, "Doe")
	m.changed(t, m.c.UpdateName(n, m.nextID(), m.now), "name", first, contact.ActionNameUpdated)
}

func (m *model) updateDescription(t *rapid.T) {
	text := rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "text")
	d, _ := contact.NewDescription(&text)
	m.changed(t, m.c.UpdateDescription(d, m.nextID(), m.now), "description", text, contact.ActionDescriptionUpdated)
}

func (m *model) updateEmail(t *rapid.T) {
	address := rapid.SampledFrom([]string{"", "a@b", "c@d"}).Draw(t, "address")
	var e contact.Email
	if address != "" {
		e, _ = contact.NewEmail(&address)
	}
	m.changed(t, m.c.UpdateEmail(e, m.nextID(), m.now), "email", address, contact.ActionEmailUpdated)
}

func (m *model) updateCompany(t *rapid.T) {
	company := rapid.SampledFrom([]string{"Contoso", "Fabrikam"}).Draw(t, "company")
	f, _ := contact.NewCompany(contact.CompanyFields{CompanyName: company})
	m.changed(t, m.c.UpdateCompany(f, m.nextID(), m.now), "company", company, contact.ActionCompanyUpdated)
}

func (m *model) delete(t *rapid.T) {
	err := m.c.Delete(m.nextID(), m.now)
	if m.version == 0 {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	m.changed(t, err, "deleted", "yes", contact.ActionDeleted)
	m.deleted = true
	m.want = map[string]string{} // no personal data is left
}

// commit checks the pending commit against the model and confirms it.
func (m *model) commit(t *rapid.T) {
	commit, changed := m.c.Pending()
	if changed != (len(m.actions) > 0) {
		t.Fatalf("changed: %t; recorded: %v", changed, m.actions)
	}
	if !changed {
		return
	}
	m.check(t, commit)
	m.c.Committed(commit)
	m.version++
	m.log = append(m.log, commit.Events...)
	m.actions = nil
	if _, changed := m.c.Pending(); changed || m.c.Version() != m.version {
		t.Fatalf("after the commit: pending %t, version %d; want none, %d", changed, m.c.Version(), m.version)
	}
}

// failedCommit prepares a commit that is never confirmed.
func (m *model) failedCommit(t *rapid.T) {
	if commit, changed := m.c.Pending(); changed {
		m.check(t, commit)
	}
}

func (m *model) check(t *rapid.T, commit aggregate.Commit) {
	got := actions(commit.Events)
	if !slices.Equal(got, m.actions) {
		t.Fatalf("actions %v; want %v", got, m.actions)
	}
	if commit.Version != m.version+1 || commit.Create != (m.version == 0) {
		t.Fatalf("version %d, create %t after version %d", commit.Version, commit.Create, m.version)
	}
	for i, e := range commit.Events {
		meta := e.Metadata()
		if meta.Sequence != int64(len(m.log)+i+1) || meta.AggregateVersion != m.version+1 || meta.AggregateID != exampleID {
			t.Fatalf("event %d has %+v; the log has %d events, the version was %d", i, meta, len(m.log), m.version)
		}
	}
	if commit.Sequence != int64(len(m.log)+len(commit.Events)) {
		t.Fatalf("state has sequence %d", commit.Sequence)
	}
	s := m.c.StateAt(commit)
	if s.FirstName != m.want["name"] || s.Description != m.want["description"] || s.Email != m.want["email"] ||
		s.Company.CompanyName != m.want["company"] || s.Deleted != m.deleted {
		t.Fatalf("state %+v; want %v", s, m.want)
	}
}

// rehydrate replaces the contact by the one that a store would return.
func (m *model) rehydrate(t *rapid.T) {
	if m.version == 0 || len(m.actions) > 0 {
		t.Skip("nothing is stored, or changes would be lost")
	}
	c, err := contact.Rehydrate(m.c.State())
	if err != nil {
		t.Fatal(err)
	}
	m.c = c
}
