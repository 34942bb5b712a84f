package contacts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

func codeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

func keyed(in contacts.CreateContact, principal, key string) contacts.CreateContact {
	in.Sender = command.Sender{Principal: principal, IdempotencyKey: key}
	return in
}

func TestRepeatedCreateReturnsFirstContact(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	first, err := mediator.Send(t.Context(), m, keyed(john(), "alice", "k1"))
	if err != nil || first.Replayed {
		t.Fatalf("first: %+v, %v", first, err)
	}
	_, err = mediator.Send(t.Context(), m, contacts.UpdateName{
		Target: command.Target{ID: first.Contact.ID}, FirstName: "Jane", LastName: "Doe",
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := mediator.Send(t.Context(), m, keyed(john(), "alice", "k1"))
	if err != nil || !again.Replayed || again.Contact.ID != first.Contact.ID || again.Contact.FirstName != "Jane" || again.ETag != "" {
		t.Errorf("repeat: %+v, %v; want the contact as it is now, without the ETag of another's change", again, err)
	}
	if len(s.events) != 2 {
		t.Errorf("%d events; want Created and NameUpdated", len(s.events))
	}
	for name, other := range map[string]contacts.CreateContact{
		"another principal": keyed(john(), "bob", "k1"),
		"another key":       keyed(john(), "alice", "k2"),
		"shifted":           keyed(john(), "alicek", "1"),
	} {
		out, err := mediator.Send(t.Context(), m, other)
		if err != nil || out.Replayed || out.Contact.ID == first.Contact.ID {
			t.Errorf("%s: %+v, %v; want a new contact", name, out, err)
		}
	}
}

func TestReusedKeyIsInvalid(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	first, err := mediator.Send(t.Context(), m, keyed(john(), "", "k"))
	if err != nil {
		t.Fatal(err)
	}
	other := keyed(john(), "", "k")
	other.Email = text("john@contoso.com")
	if _, err := mediator.Send(t.Context(), m, other); !fault.Is(err, fault.Invalid) || codeOf(err) != command.CodeKeyReused {
		t.Errorf("another body: %v", err)
	}
	_, err = mediator.Send(t.Context(), m, contacts.DeleteContact{Target: command.Target{ID: first.Contact.ID}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mediator.Send(t.Context(), m, keyed(john(), "", "k")); !fault.Is(err, fault.Gone) {
		t.Errorf("deleted meanwhile: %v", err)
	}
	if _, err := mediator.Send(t.Context(), m, other); codeOf(err) != command.CodeKeyReused {
		t.Errorf("another body, deleted meanwhile: %v", err)
	}
}

func TestRepeatedUpdateDoesNothing(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	rename := func(first, key string, ifMatch ...string) (command.Updated, error) {
		return mediator.Send(t.Context(), m, contacts.UpdateName{
			Target:    command.Target{ID: id, IfMatch: ifMatch, Sender: command.Sender{IdempotencyKey: key}},
			FirstName: first, LastName: "Doe",
		})
	}
	for _, step := range []struct {
		what     string
		first    string
		key      string
		ifMatch  []string
		version  int64
		replayed bool
		etag     bool
		code     string
	}{
		{"first", "Jane", "k1", []string{`"v1"`}, 2, false, true, ""},
		{"repeat, its precondition is stale by its own doing", "Jane", "k1", []string{`"v1"`}, 2, true, true, ""},
		{"another change", "Joan", "", nil, 3, false, true, ""},
		{"repeat after another change", "Jane", "k1", nil, 3, true, false, ""},
		{"another request under the key", "June", "k1", nil, 0, false, false, command.CodeKeyReused},
		{"a stale precondition under a new key", "June", "k2", []string{`"v1"`}, 0, false, false, "precondition_failed"},
		{"no change under a new key", "Joan", "k3", nil, 3, false, true, ""},
		{"repeat of no change, at once", "Joan", "k3", nil, 3, true, true, ""},
		{"another change", "June", "", nil, 4, false, true, ""},
		{"repeat of no change", "Joan", "k3", nil, 4, true, false, ""},
	} {
		out, err := rename(step.first, step.key, step.ifMatch...)
		if wantETag := err == nil && step.etag; (out.ETag != "") != wantETag {
			t.Errorf("%s: the ETag is %s", step.what, out.ETag)
		}
		if codeOf(err) != step.code || (err != nil) != (step.code != "") || out.Version != step.version || out.Replayed != step.replayed {
			t.Errorf("%s: %+v, %v; want version %d, replayed %t, %q", step.what, out, err, step.version, step.replayed, step.code)
		}
	}
	if s.states[id].FirstName != "June" {
		t.Errorf("the name is %s; want that of the last change", s.states[id].FirstName)
	}
}

func TestRepeatOnDeletedContact(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	id := created(t, m)
	target := command.Target{ID: id, Sender: command.Sender{IdempotencyKey: "k"}}
	update := contacts.UpdateEmail{Target: target, Email: text("a@b")}
	if _, err := mediator.Send(t.Context(), m, update); err != nil {
		t.Fatal(err)
	}
	if _, err := mediator.Send(t.Context(), m, contacts.DeleteContact{Target: command.Target{ID: id}}); err != nil {
		t.Fatal(err)
	}
	if out, err := mediator.Send(t.Context(), m, update); err != nil || !out.Replayed || out.ETag != "" {
		t.Errorf("repeat: %+v, %v; want a replay without an ETag", out, err)
	}
	update.IdempotencyKey = "other"
	if _, err := mediator.Send(t.Context(), m, update); !fault.Is(err, fault.NotFound) {
		t.Errorf("under a new key: %v", err)
	}
}

// Of two concurrent requests under one key, one is executed and the other is a replay.
func TestConcurrentRepeatIsReplayed(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	update := contacts.UpdateEmail{Target: command.Target{ID: id, Sender: command.Sender{IdempotencyKey: "k"}}, Email: text("a@b")}
	s.before = func() {
		s.before = nil
		if _, err := mediator.Send(t.Context(), m, update); err != nil {
			t.Error(err)
		}
	}
	out, err := mediator.Send(t.Context(), m, update)
	if err != nil || !out.Replayed || out.Version != 2 || len(s.events) != 2 {
		t.Errorf("%+v, %v, %d events", out, err, len(s.events))
	}
}

func TestMalformedKeyIsInvalid(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	id := created(t, m)
	s.begun = 0
	for _, key := range []string{" ", "a\nb", "\xff", strings.Repeat("k", 256)} {
		_, createErr := mediator.Send(t.Context(), m, keyed(john(), "", key))
		_, updateErr := mediator.Send(t.Context(), m, contacts.UpdateEmail{
			Target: command.Target{ID: id, Sender: command.Sender{IdempotencyKey: key}},
		})
		if codeOf(createErr) != command.CodeKeyInvalid || codeOf(updateErr) != command.CodeKeyInvalid {
			t.Errorf("%.9q: %v, %v", key, createErr, updateErr)
		}
	}
	if s.begun != 0 {
		t.Error("a unit of work was begun for an invalid key")
	}
	both := keyed(john(), "", "k")
	both.ContactID = uuid.New()
	if _, err := mediator.Send(t.Context(), m, both); err == nil {
		t.Error("an id and a key are accepted together")
	}
}

func TestEveryCommitIsAudited(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	in := john()
	in.Principal = "alice"
	out, err := mediator.Send(t.Context(), m, in)
	if err != nil {
		t.Fatal(err)
	}
	id := out.Contact.ID
	patch := contacts.PatchContact{
		Target:    command.Target{ID: id, Sender: command.Sender{Principal: "bob"}},
		FirstName: member("Jane"), Email: member("jane@contoso.com"),
	}
	for range 2 { // the second changes nothing
		if _, err := mediator.Send(t.Context(), m, patch); err != nil {
			t.Fatal(err)
		}
	}
	want := []query.AuditEntry{
		{AggregateID: id, Version: 1, At: now, Principal: "alice", Events: []query.AuditedEvent{{Action: contact.ActionCreated, Sequence: 1}}},
		{AggregateID: id, Version: 2, At: now, Principal: "bob", Events: []query.AuditedEvent{
			{Action: contact.ActionNameUpdated, Sequence: 2}, {Action: contact.ActionEmailUpdated, Sequence: 3},
		}},
	}
	if diff := cmp.Diff(want, s.audit, cmpopts.IgnoreFields(query.AuditedEvent{}, "ID")); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}
