package contacts_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

func member(s string) contacts.Member { return contacts.Member{Present: true, Text: &s} }

func null() contacts.Member { return contacts.Member{Present: true} }

func TestPatchMakesSeveralChangesInOneCommit(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	in := john()
	in.Email, in.Company.City = text("john@contoso.com"), "Palo Alto"
	first, err := mediator.Send(t.Context(), m, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := mediator.Send(t.Context(), m, contacts.PatchContact{
		Target:      command.Target{ID: first.Contact.ID, IfMatch: []string{first.ETag}},
		FirstName:   member("Jane"),
		Description: member("a person"),
		Email:       null(),
		Street:      member("Street"),
		City:        null(),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := contacts.ContactPatched{
		Updated: command.Updated{ETag: `"v2"`, SessionToken: out.SessionToken, Version: 2},
		Contact: contacts.Contact{
			ID: first.Contact.ID, FirstName: "Jane", LastName: "Doe", Description: text("a person"),
			Company: contact.CompanyFields{CompanyName: "Contoso", Street: "Street"}, CreatedAt: now, ModifiedAt: &now, Version: 2,
		},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	var got []string
	for _, e := range s.events[1:] {
		got = append(got, e.Action())
	}
	wantActions := []string{
		contact.ActionNameUpdated, contact.ActionDescriptionUpdated, contact.ActionEmailUpdated, contact.ActionCompanyUpdated,
	}
	if diff := cmp.Diff(wantActions, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestPatchWithoutChangeRecordsNothing(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	for _, patch := range []contacts.PatchContact{{}, {FirstName: member("John"), Email: null(), Description: member("")}} {
		patch.ID = id
		out, err := mediator.Send(t.Context(), m, patch)
		if err != nil || out.Version != 1 || out.ETag != `"v1"` || out.Contact.FirstName != "John" {
			t.Errorf("%+v, %v; want version 1", out, err)
		}
	}
	if len(s.events) != 1 {
		t.Errorf("%d events", len(s.events))
	}
}

func TestPatchReportsEveryFaultAndChangesNothing(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	_, err := mediator.Send(t.Context(), m, contacts.PatchContact{
		Target:    command.Target{ID: id},
		FirstName: null(), LastName: member("Smith"), Description: member("\x00"), Email: member("nobody"),
		CompanyName: null(), HouseNumber: member("12345678901"),
	})
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid {
		t.Fatalf("error %v", err)
	}
	var pointers []string
	for _, field := range f.Fields {
		pointers = append(pointers, field.Pointer)
	}
	want := []string{"/name/firstName", "/description", "/email", "/company/companyName", "/company/houseNumber"}
	if diff := cmp.Diff(want, pointers); diff != "" {
		t.Errorf("pointers (-want +got):\n%s", diff)
	}
	if s.states[id].LastName != "Doe" || len(s.events) != 1 {
		t.Errorf("state %+v", s.states[id])
	}
}

// A stored value that breaks a newer rule does not fail a patch of another part.
func TestPatchValidatesOnlyTouchedParts(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	old := s.states[id]
	old.Email, old.Company.CompanyName = "not an address", ""
	s.states[id] = old
	patch := contacts.PatchContact{Target: command.Target{ID: id}, FirstName: member("Jane")}
	if _, err := mediator.Send(t.Context(), m, patch); err != nil {
		t.Error(err)
	}
}

func TestPatchFaults(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	id := created(t, m)
	patch := func(id uuid.UUID, key string, ifMatch ...string) error {
		_, err := mediator.Send(t.Context(), m, contacts.PatchContact{
			Target:    command.Target{ID: id, IfMatch: ifMatch, Sender: command.Sender{IdempotencyKey: key}},
			FirstName: member("Jane"),
		})
		return err
	}
	if err := patch(uuid.New(), ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown contact: %v", err)
	}
	if err := patch(id, "", `"v0"`); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("a stale ETag: %v", err)
	}
	if err := patch(id, "k"); err != nil {
		t.Error(err)
	}
	if err := patch(id, "k", `"v1"`); err != nil {
		t.Errorf("a repeat: %v", err)
	}
	if _, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: command.Target{ID: id}}); err != nil {
		t.Fatal(err)
	}
	if err := patch(id, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted contact: %v", err)
	}
	if err := patch(id, "k"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a repeat on a deleted contact, which cannot be shown: %v", err)
	}
}
