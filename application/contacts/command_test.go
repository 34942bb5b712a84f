package contacts_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

func TestCreateContact(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	in := john()
	in.ContactID = uuid.New()
	in.Email = text("john@contoso.com")
	out, err := mediator.Send(t.Context(), m, in)
	if err != nil {
		t.Fatal(err)
	}
	want := contacts.ContactCreated{
		Contact: contacts.Contact{
			ID: in.ContactID, FirstName: "John", LastName: "Doe", Email: text("john@contoso.com"),
			Company: contact.CompanyFields{CompanyName: "Contoso"}, CreatedAt: now, Version: 1,
		},
		ETag:         `"v1"`,
		SessionToken: "0:-1#1",
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if len(s.events) != 1 || s.events[0].Action() != contact.ActionCreated {
		t.Errorf("events: %v", s.events)
	}
	if _, err := mediator.Send(t.Context(), m, in); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same id again: %v; want a conflict", err)
	}
}

func TestCreateContactReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	_, err := mediator.Send(t.Context(), m, contacts.CreateContact{
		FirstName: " ", Email: text("nobody"), Description: text("\x00"),
		Company: contact.CompanyFields{PostalCode: "12345678901234567890123456"},
	})
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Code != fault.CodeValidation {
		t.Fatalf("error %v", err)
	}
	var pointers []string
	for _, field := range f.Fields {
		pointers = append(pointers, field.Pointer)
	}
	want := []string{"/firstName", "/lastName", "/email", "/description", "/companyName", "/postalCode"}
	if diff := cmp.Diff(want, pointers); diff != "" {
		t.Errorf("pointers (-want +got):\n%s", diff)
	}
	if s.begun != 0 {
		t.Error("a unit of work was begun for invalid input")
	}
}

// Each update records its event and returns the new ETag. Repeated with the same value it
// does nothing.
func TestUpdateRecordsEventOnce(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	target := command.Target{ID: created(t, m)}
	for i, update := range []struct {
		action string
		send   func() (command.Updated, error)
	}{
		{contact.ActionNameUpdated, func() (command.Updated, error) {
			return mediator.Send(t.Context(), m, contacts.UpdateName{Target: target, FirstName: "Jane", LastName: "Doe"})
		}},
		{contact.ActionDescriptionUpdated, func() (command.Updated, error) {
			return mediator.Send(t.Context(), m, contacts.UpdateDescription{Target: target, Description: text("a person")})
		}},
		{contact.ActionEmailUpdated, func() (command.Updated, error) {
			return mediator.Send(t.Context(), m, contacts.UpdateEmail{Target: target, Email: text("jane@contoso.com")})
		}},
		{contact.ActionEmailUpdated, func() (command.Updated, error) {
			return mediator.Send(t.Context(), m, contacts.UpdateEmail{Target: target})
		}},
		{contact.ActionCompanyUpdated, func() (command.Updated, error) {
			return mediator.Send(t.Context(), m, contacts.UpdateCompany{Target: target, Company: contact.CompanyFields{CompanyName: "Fabrikam"}})
		}},
	} {
		for range 2 {
			out, err := update.send()
			if err != nil {
				t.Fatalf("%s: %v", update.action, err)
			}
			version := int64(i + 2)
			want := command.Updated{ETag: etagOf(contact.State{Version: version}), SessionToken: out.SessionToken, Version: version}
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("%s: answer (-want +got):\n%s", update.action, diff)
			}
			if len(s.events) != i+2 || s.events[i+1].Action() != update.action {
				t.Errorf("%s: %d events, the last is %s", update.action, len(s.events), s.events[len(s.events)-1].Action())
			}
		}
	}
}

func TestUpdatesRefuseInvalidInputBeforeReading(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	_, nameErr := mediator.Send(t.Context(), m, contacts.UpdateName{})
	_, emailErr := mediator.Send(t.Context(), m, contacts.UpdateEmail{Email: text("")})
	_, descriptionErr := mediator.Send(t.Context(), m, contacts.UpdateDescription{Description: text("\n")})
	_, companyErr := mediator.Send(t.Context(), m, contacts.UpdateCompany{})
	for _, err := range []error{nameErr, emailErr, descriptionErr, companyErr} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%v; want invalid", err)
		}
	}
	if s.begun != 0 {
		t.Error("a unit of work was begun for invalid input")
	}
}

func TestUpdateOfUnknownOrDeletedContactIsNotFound(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	unknown := command.Target{ID: uuid.New()}
	deleted := command.Target{ID: created(t, m)}
	if _, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: deleted}); err != nil {
		t.Fatal(err)
	}
	for _, target := range []command.Target{unknown, deleted} {
		_, err := mediator.Send(t.Context(), m, contacts.UpdateEmail{Target: target})
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%v; want not found", err)
		}
	}
	if _, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: unknown}); !fault.Is(err, fault.NotFound) {
		t.Errorf("delete of an unknown contact: %v", err)
	}
}

func TestSecondDeleteRecordsNothing(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	for _, ifMatch := range [][]string{{`"v1"`}, nil, {`"v1"`}, {"*"}} {
		out, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: command.Target{ID: id, IfMatch: ifMatch}})
		if err != nil || out.Version != 2 || out.ETag != "" {
			t.Errorf("delete with %v: %+v, %v", ifMatch, out, err)
		}
	}
	if len(s.events) != 2 {
		t.Errorf("%d events; want Created and Deleted", len(s.events))
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	rename := func(first string, ifMatch ...string) error {
		_, err := mediator.Send(t.Context(), m, contacts.UpdateName{
			Target: command.Target{ID: id, IfMatch: ifMatch}, FirstName: first, LastName: "Doe",
		})
		return err
	}
	if err := rename("Jane", `"v0"`, `"v1"`); err != nil {
		t.Errorf("one of two ETags matches: %v", err)
	}
	if err := rename("Joan", `"v1"`); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("a stale ETag: %v", err)
	}
	if err := rename("Joan", "*"); err != nil {
		t.Errorf("any ETag: %v", err)
	}
	_, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: command.Target{ID: id, IfMatch: []string{`"v1"`}}})
	if !fault.Is(err, fault.PreconditionFailed) || s.states[id].Deleted {
		t.Errorf("delete with a stale ETag: %v", err)
	}
}

// racer lets another writer win the next races.
func racer(s *store, id uuid.UUID, races int) {
	s.before = func() {
		if races == 0 {
			return
		}
		races--
		state := s.states[id]
		state.Version++
		state.Sequence++
		s.states[id] = state
	}
}

func TestLostRaceIsRetried(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	racer(s, id, 4)
	s.session = nil
	out, err := mediator.Send(t.Context(), m, contacts.UpdateName{
		Target: command.Target{ID: id, SessionToken: "0:-1#0"}, FirstName: "Jane", LastName: "Doe",
	})
	if err != nil || out.Version != 6 {
		t.Fatalf("%+v, %v; want version 6 after four lost races", out, err)
	}
	if len(s.session) != 5 || s.session[0] != "0:-1#0" || s.session[1] == s.session[0] {
		t.Errorf("session tokens %q; want the client's first and then those of the failed commits", s.session)
	}
}

// A command without a precondition never returns PreconditionFailed.
func TestLostRaceIsRetriedBoundedly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, s := app(t)
		id := created(t, m)
		var waits []time.Duration
		for _, ifMatch := range [][]string{nil, {"*"}} {
			racer(s, id, 100)
			s.begun = 0
			started := time.Now()
			_, err := mediator.Send(t.Context(), m, contacts.UpdateName{Target: command.Target{ID: id, IfMatch: ifMatch}, FirstName: "Jane", LastName: "Doe"})
			if !fault.Is(err, fault.Unavailable) || codeOf(err) != command.CodeContended || fault.RetryAfter(err) <= 0 || s.begun != 24 {
				t.Errorf("%v after %d units of work; want unavailable with a RetryAfter, after 24", err, s.begun)
			}
			took := time.Since(started)
			if took < time.Second || took > 7500*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			waits = append(waits, took)
		}
		if waits[0] == waits[1] {
			t.Errorf("two commands with equally many lost races waited %v each, and would collide again", waits[0])
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		racer(s, id, 100)
		s.begun = 0
		_, err := mediator.Send(ctx, m, contacts.UpdateName{Target: command.Target{ID: id}, FirstName: "Joan", LastName: "Doe"})
		if codeOf(err) != command.CodeContended || s.begun >= 20 {
			t.Errorf("out of time: %v after %d units of work", err, s.begun)
		}
	})
}

func TestLostRaceWithPreconditionFails(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	racer(s, id, 1)
	s.begun = 0
	_, err := mediator.Send(t.Context(), m, contacts.UpdateName{
		Target: command.Target{ID: id, IfMatch: []string{`"v1"`}}, FirstName: "Jane", LastName: "Doe",
	})
	if !fault.Is(err, fault.PreconditionFailed) || s.begun != 2 {
		t.Errorf("%v after %d units of work; want precondition failed after 2", err, s.begun)
	}
}

// A command that loses the race against a deletion returns NotFound, with or without a
// precondition.
func TestLostRaceAgainstDeletionIsNotFound(t *testing.T) {
	t.Parallel()
	for _, ifMatch := range [][]string{nil, {"*"}, {`"v1"`}} {
		m, s := app(t)
		id := created(t, m)
		target := command.Target{ID: id, IfMatch: ifMatch}
		s.before = func() {
			s.before = nil
			if _, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: target}); err != nil {
				t.Error(err)
			}
		}
		_, err := mediator.Send(t.Context(), m, contacts.UpdateName{Target: target, FirstName: "Jane", LastName: "Doe"})
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("update, %q: %v; want not found", ifMatch, err)
		}
	}
}

func TestBrokenSessionTokenIsInvalid(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	in := john()
	in.SessionToken = "broken"
	_, createErr := mediator.Send(t.Context(), m, in)
	_, updateErr := mediator.Send(t.Context(), m, contacts.UpdateEmail{Target: command.Target{ID: uuid.New(), SessionToken: "broken"}})
	if !fault.Is(createErr, fault.Invalid) || !fault.Is(updateErr, fault.Invalid) {
		t.Errorf("create: %v, update: %v; want invalid", createErr, updateErr)
	}
}

func TestRegisterRequiresPorts(t *testing.T) {
	t.Parallel()
	if err := contacts.RegisterCommands(mediator.New(), contacts.CommandPorts{}); err == nil {
		t.Error("missing ports are accepted")
	}
}
