package contacts_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
)

// A repeat is read with the session token of the failed create. With the client's token, a
// lagging replica might not have the contact yet.
func TestRepeatedCreateReadsWithSessionOfConflict(t *testing.T) {
	t.Parallel()
	m, s := app(t)
	in := keyed(john(), "", "k")
	in.SessionToken = "0:-1#0"
	for range 2 {
		if _, err := mediator.Send(t.Context(), m, in); err != nil {
			t.Fatal(err)
		}
	}
	if last := s.session[len(s.session)-1]; len(s.session) != 3 || last != "0:-1#1" {
		t.Errorf("session tokens %q; want the last read to see the contact", s.session)
	}
}

// others returns copies of in by field name. In each copy that field has another value.
func others[C any](t *testing.T, in C) map[string]C {
	t.Helper()
	notContent := []string{"ContactID", "IfMatch", "SessionToken", "Sender", "Target"}
	made := map[string]C{}
	var visit func(path string, of reflect.Type, at func(c *C) reflect.Value)
	visit = func(path string, of reflect.Type, at func(c *C) reflect.Value) {
		for i := range of.NumField() {
			name, field := path+of.Field(i).Name, func(c *C) reflect.Value { return at(c).Field(i) }
			if slices.Contains(notContent, name) {
				continue
			}
			one := in
			switch v := field(&one); v.Interface().(type) {
			case string:
				v.SetString("other")
			case *string:
				v.Set(reflect.ValueOf(text("other")))
			case contacts.Member:
				v.Set(reflect.ValueOf(member("other")))
			default:
				visit(name+".", v.Type(), field)
				continue
			}
			made[name] = one
		}
	}
	visit("", reflect.TypeFor[C](), func(c *C) reflect.Value { return reflect.ValueOf(c).Elem() })
	return made
}

// Every field of a command is part of its hash. If one were missing, a different request would
// be answered as a repeat.
func TestEveryFieldIsPartOfRequestHash(t *testing.T) {
	t.Parallel()
	m, _ := app(t)
	sender := command.Sender{IdempotencyKey: "k"}
	refused := func(name string, err error) {
		t.Helper()
		if codeOf(err) != command.CodeKeyReused {
			t.Errorf("another %s under the key: %v", name, err)
		}
	}
	create := keyed(john(), "", "k")
	out, err := mediator.Send(t.Context(), m, create)
	if err != nil {
		t.Fatal(err)
	}
	creates := others(t, create)
	for name, other := range creates {
		if strings.HasSuffix(name, "Email") {
			other.Email = text("other@contoso.com")
		}
		_, err := mediator.Send(t.Context(), m, other)
		refused("create: "+name, err)
	}
	sender.IdempotencyKey = "of the patch" // the other one has created the contact
	patch := contacts.PatchContact{Target: command.Target{ID: out.Contact.ID, Sender: sender}, FirstName: member("Jane")}
	if _, err := mediator.Send(t.Context(), m, patch); err != nil {
		t.Fatal(err)
	}
	patches := others(t, patch)
	for name, other := range patches {
		if name == "Email" {
			other.Email = member("other@contoso.com")
		}
		_, err := mediator.Send(t.Context(), m, other)
		refused("patch: "+name, err)
	}
	if len(creates) < 10 || len(patches) != 10 || out.Replayed {
		t.Errorf("%d fields of a creation and %d of a patch were tried", len(creates), len(patches))
	}
}

type outbox struct{ actions []string }

func (o *outbox) Add(_ context.Context, e event.Event) error {
	o.actions = append(o.actions, e.Action())
	return nil
}

func TestEveryContactEventReachesOutboxOnce(t *testing.T) {
	t.Parallel()
	m := mediator.New()
	contacts.SubscribeEvents(m)
	for _, e := range []event.Event{
		contact.ContactCreatedEvent{},
		contact.ContactNameUpdatedEvent{},
		contact.ContactDescriptionUpdatedEvent{},
		contact.ContactEmailUpdatedEvent{},
		contact.ContactCompanyUpdatedEvent{},
		contact.ContactDeletedEvent{},
	} {
		var box outbox
		if err := m.Publish(t.Context(), &box, e); err != nil {
			t.Errorf("%T: %v", e, err)
		}
		if len(box.actions) != 1 || box.actions[0] != e.Action() {
			t.Errorf("%T: the outbox holds %v", e, box.actions)
		}
	}
}
