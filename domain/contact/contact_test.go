package contact_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/domain/fault"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 2*3600))

// stored returns a contact that was committed once.
func stored(t *testing.T) *contact.Contact {
	t.Helper()
	c, err := contact.New(uuid.New(), exampleDetails(), uuid.New(), start)
	if err != nil {
		t.Fatal(err)
	}
	commit, _ := c.Pending()
	c.Committed(commit)
	return c
}

func name(t *testing.T, first string) contact.Name {
	t.Helper()
	n, err := contact.NewName(first, "Doe")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func actions(events []event.Event) []string {
	var names []string
	for _, e := range events {
		names = append(names, e.Action())
	}
	return names
}

func TestNewContactRecordsOnlyCreatedEvent(t *testing.T) {
	t.Parallel()
	id, eventID := uuid.New(), uuid.New()
	c, err := contact.New(id, exampleDetails(), eventID, start)
	if err != nil {
		t.Fatal(err)
	}
	text := "a person"
	description, _ := contact.NewDescription(&text)
	for _, change := range []error{
		c.UpdateName(name(t, "Jane"), uuid.New(), start.Add(time.Hour)),
		c.UpdateDescription(description, uuid.New(), start),
		c.Delete(uuid.New(), start), // never committed: nothing happens
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	commit, changed := c.Pending()
	if !changed || !commit.Create {
		t.Fatalf("Pending: changed %t, create %t; want both", changed, commit.Create)
	}
	want := []event.Event{contact.ContactCreatedEvent{
		Meta: event.Meta{ID: eventID, AggregateID: id, CreatedAt: start, AggregateVersion: 1, Sequence: 1},
		Contact: contact.State{
			ID: id, FirstName: "Jane", LastName: "Doe", Description: "a person",
			Company: contact.CompanyFields{CompanyName: "Contoso"}, CreatedAt: start, Version: 1, Sequence: 1,
		},
	}}
	if diff := cmp.Diff(want, commit.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[0].(contact.ContactCreatedEvent).Contact, c.StateAt(commit)); diff != "" {
		t.Errorf("the event's contact is not the state committed:\n%s", diff)
	}
}

func TestLaterEventOfActionReplacesEarlierInPlace(t *testing.T) {
	t.Parallel()
	c := stored(t)
	address := "jane@contoso.com"
	email, _ := contact.NewEmail(&address)
	last := uuid.New()
	_ = c.UpdateName(name(t, "Jane"), uuid.New(), start)
	_ = c.UpdateEmail(email, uuid.New(), start)
	_ = c.UpdateName(name(t, "Joan"), last, start.Add(time.Minute))

	commit, _ := c.Pending()
	if diff := cmp.Diff([]string{contact.ActionNameUpdated, contact.ActionEmailUpdated}, actions(commit.Events)); diff != "" {
		t.Fatalf("actions (-want +got):\n%s", diff)
	}
	first := commit.Events[0].(contact.ContactNameUpdatedEvent)
	if first.Name.First() != "Joan" || first.ID != last || !first.CreatedAt.Equal(start.Add(time.Minute)) {
		t.Errorf("the first event is not the last change: %+v", first.Meta)
	}
	if commit.Version != 2 || commit.Sequence != 3 {
		t.Errorf("version %d, sequence %d; want 2, 3", commit.Version, commit.Sequence)
	}
}

func TestVerbWithoutChangeRecordsNothing(t *testing.T) {
	t.Parallel()
	c := stored(t)
	before := c.State()
	company, _ := contact.NewCompany(before.Company)
	for _, err := range []error{
		c.UpdateName(name(t, "John"), uuid.New(), start.Add(time.Hour)),
		c.UpdateDescription(contact.Description{}, uuid.New(), start.Add(time.Hour)),
		c.UpdateEmail(contact.Email{}, uuid.New(), start.Add(time.Hour)),
		c.UpdateCompany(company, uuid.New(), start.Add(time.Hour)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, changed := c.Pending(); changed {
		t.Error("something is pending after verbs that changed nothing")
	}
	if diff := cmp.Diff(before, c.State()); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
}

func TestVerbsOnDeletedContactReturnNotFound(t *testing.T) {
	t.Parallel()
	c := stored(t)
	if err := c.Delete(uuid.New(), start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	commit, _ := c.Pending()
	if diff := cmp.Diff([]string{contact.ActionDeleted}, actions(commit.Events)); diff != "" {
		t.Fatalf("actions (-want +got):\n%s", diff)
	}
	c.Committed(commit)
	if s := c.State(); !s.Deleted || !s.DeletedAt.Equal(start.Add(time.Hour)) || !s.ModifiedAt.Equal(s.DeletedAt) {
		t.Errorf("state after Delete: %+v", s)
	}
	company, _ := contact.NewCompany(contact.CompanyFields{CompanyName: "Fabrikam"})
	for verb, err := range map[string]error{
		"UpdateName":        c.UpdateName(name(t, "Jane"), uuid.New(), start),
		"UpdateDescription": c.UpdateDescription(contact.Description{}, uuid.New(), start),
		"UpdateEmail":       c.UpdateEmail(contact.Email{}, uuid.New(), start),
		"UpdateCompany":     c.UpdateCompany(company, uuid.New(), start),
		"Delete":            c.Delete(uuid.New(), start),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v; want not found", verb, err)
		}
	}
	if _, changed := c.Pending(); changed {
		t.Error("something is pending on a deleted contact")
	}
}

func TestFailedCommitKeepsVersionAndSequence(t *testing.T) {
	t.Parallel()
	c := stored(t)
	_ = c.UpdateName(name(t, "Jane"), uuid.New(), start)
	first, _ := c.Pending() // never confirmed
	again, _ := c.Pending()
	if diff := cmp.Diff(first, again, cmp.AllowUnexported(contact.Name{})); diff != "" {
		t.Errorf("the second Pending differs (-first +again):\n%s", diff)
	}
	if c.Version() != 1 {
		t.Errorf("version %d before the commit is confirmed; want 1", c.Version())
	}
}

func TestRehydrateRoundTrip(t *testing.T) {
	t.Parallel()
	c := stored(t)
	_ = c.UpdateName(name(t, "Jane"), uuid.New(), start.Add(time.Hour))
	commit, _ := c.Pending()
	c.Committed(commit)
	again, err := contact.Rehydrate(c.State())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.State(), again.State()); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestRehydrateRefusesImpossibleState(t *testing.T) {
	t.Parallel()
	valid := stored(t).State()
	for name, breakIt := range map[string]func(*contact.State){
		"no id":                  func(s *contact.State) { s.ID = uuid.Nil },
		"no version":             func(s *contact.State) { s.Version = 0 },
		"sequence below version": func(s *contact.State) { s.Version, s.Sequence = 3, 2 },
	} {
		state := valid
		breakIt(&state)
		if _, err := contact.Rehydrate(state); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestNewRefusesZeroIDsAndParts(t *testing.T) {
	t.Parallel()
	details := exampleDetails()
	for name, try := range map[string]func() (*contact.Contact, error){
		"nil id":       func() (*contact.Contact, error) { return contact.New(uuid.Nil, details, uuid.New(), start) },
		"nil event id": func() (*contact.Contact, error) { return contact.New(uuid.New(), details, uuid.Nil, start) },
		"no name": func() (*contact.Contact, error) {
			return contact.New(uuid.New(), contact.Details{Company: details.Company}, uuid.New(), start)
		},
		"no company": func() (*contact.Contact, error) {
			return contact.New(uuid.New(), contact.Details{Name: details.Name}, uuid.New(), start)
		},
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
