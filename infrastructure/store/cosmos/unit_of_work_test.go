package cosmos_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
)

func actionsOf(events []stored) []string {
	var actions []string
	for _, e := range events {
		actions = append(actions, e.Data.Action)
	}
	return actions
}

func TestContactAndEventsAreStoredTogether(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Traceparent: func(context.Context) string { return trace }}})
	out := w.create()
	id := out.Contact.ID
	renamed, err := w.rename(t.Context(), id, "Jane", out.ETag)
	must(t, err)
	deleted, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
	must(t, err)

	c, events := w.documents(id)
	if want := []string{contact.ActionCreated, contact.ActionNameUpdated, contact.ActionDeleted}; !slices.Equal(actionsOf(events), want) {
		t.Fatalf("events %v; want %v", actionsOf(events), want)
	}
	for i, e := range events {
		if e.Data.AggregateVersion != int64(i+1) || e.TTL != 864000 || e.Data.Traceparent != trace {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if c.Data.Version != 3 || c.Data.Sequence != 3 || c.TTL != 2592000 || renamed.Version != 2 || deleted.Version != 3 {
		t.Errorf("contact %+v after versions %d, %d", c, renamed.Version, deleted.Version)
	}
	if renamed.SessionToken == "" || out.SessionToken == "" {
		t.Error("a commit returned no session token")
	}
}

func TestNoChangeWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	same, err := w.rename(t.Context(), out.Contact.ID, "John")
	must(t, err)
	if same.ETag != out.ETag || same.Version != 1 {
		t.Errorf("%+v; want the old ETag and version", same)
	}
	if stored, events := w.documents(out.Contact.ID); stored.ETag != out.ETag || len(events) != 1 {
		t.Errorf("stored %+v with %v; want nothing new", stored, actionsOf(events))
	}
}

// A transaction that fails leaves neither the change nor an event.
func TestStaleETagStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	id := out.Contact.ID

	stale, err := w.work.Begin("")
	must(t, err)
	c, err := stale.Read(t.Context(), id, nil)
	must(t, err)
	_, err = w.rename(t.Context(), id, "Jane")
	must(t, err)
	joan, _ := contact.NewName("Joan", "Doe")
	must(t, c.UpdateName(joan, uuid.New(), time.Now()))
	if _, err = stale.Commit(t.Context()); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("the stale commit: %v", err)
	}
	if _, err := w.rename(t.Context(), id, "Joan", out.ETag); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("the stale client: %v", err)
	}
	stored, events := w.documents(id)
	if stored.Data.Name.FirstName != "Jane" || len(events) != 2 {
		t.Errorf("stored %+v with the events %v; want Jane and two events", stored, actionsOf(events))
	}
}

func TestTakenIDStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	in := john()
	in.ContactID = w.create().Contact.ID
	in.FirstName = "Jane"
	if _, err := mediator.Send(t.Context(), w.app, in); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v; want a conflict", err)
	}
	stored, events := w.documents(in.ContactID)
	if stored.Data.Name.FirstName != "John" || len(events) != 1 {
		t.Errorf("stored %+v with the events %v", stored, actionsOf(events))
	}
}

func TestUnhandledEventFailsTheCommit(t *testing.T) {
	t.Parallel()
	failed := errors.New("handler failed")
	for name, subscribe := range map[string]func(*mediator.Mediator){
		"no handler": func(*mediator.Mediator) {},
		"a handler that fails": func(m *mediator.Mediator) {
			contacts.SubscribeEvents(m)
			mediator.Subscribe(m, func(context.Context, mediator.Outbox, contact.ContactCreatedEvent) error { return failed })
		},
		"a handler that drops the event": func(m *mediator.Mediator) {
			mediator.Subscribe(m, func(context.Context, mediator.Outbox, contact.ContactCreatedEvent) error { return nil })
		},
	} {
		w := newWorld(t, worldOptions{bare: true})
		subscribe(w.app)
		in := john()
		in.ContactID = uuid.New()
		if _, err := mediator.Send(t.Context(), w.app, in); err == nil {
			t.Errorf("%s: committed", name)
		}
		if c, events := w.documents(in.ContactID); c != nil || len(events) > 0 || w.wire.transactions() > 0 {
			t.Errorf("%s: stored %v and %v", name, c, events)
		}
	}
}

func TestOneUnitOfWorkStoresOneContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	first, second := w.create().Contact.ID, w.create().Contact.ID
	work, err := w.work.Begin("")
	must(t, err)
	for _, id := range []uuid.UUID{first, second} {
		c, err := work.Read(t.Context(), id, nil)
		must(t, err)
		must(t, c.Delete(uuid.New(), time.Now()))
	}
	if _, err := work.Commit(t.Context()); err == nil {
		t.Error("a transaction over two partition keys is accepted")
	}
	for _, id := range []uuid.UUID{first, second} {
		if _, events := w.documents(id); len(events) != 1 {
			t.Errorf("%s has the events %v", id, actionsOf(events))
		}
	}
}

// A commit without a change checks all aggregates that were read.
func TestCommitWithoutChangeChecksAllAggregates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	ids := []uuid.UUID{w.create().Contact.ID, w.create().Contact.ID}
	work, err := w.work.Begin("")
	must(t, err)
	for _, id := range ids {
		_, err := work.Read(t.Context(), id, nil)
		must(t, err)
	}
	if work.SessionToken() == "" {
		t.Error("what was read is not in the session")
	}
	_, err = work.Commit(t.Context())
	must(t, err)
	_, err = w.rename(t.Context(), ids[1], "Jane")
	must(t, err)
	if _, err := work.Commit(t.Context()); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("the second has changed meanwhile: %v", err)
	}
}

// A unit of work can be used after its commit, with the new ETag and without the old events.
func TestUnitOfWorkCommitsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	work, err := w.work.Begin("")
	must(t, err)
	c, err := work.Read(t.Context(), id, nil)
	must(t, err)
	for _, first := range []string{"Jane", "Joan"} {
		n, _ := contact.NewName(first, "Doe")
		must(t, c.UpdateName(n, uuid.New(), time.Now()))
		_, err = work.Commit(t.Context())
		must(t, err)
	}
	if stored, events := w.documents(id); stored.Data.Version != 3 || len(events) != 3 {
		t.Errorf("version %d, events %v", stored.Data.Version, actionsOf(events))
	}
}

func TestDocumentsExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	kept, deleted := w.create().Contact.ID, w.create().Contact.ID
	_, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: deleted}})
	must(t, err)
	w.emulator.Advance(241 * time.Hour)
	if c, events := w.documents(kept); c == nil || len(events) != 0 {
		t.Errorf("after 241 h: contact %v, events %v; want the contact only", c, events)
	}
	if c, _ := w.documents(deleted); c == nil {
		t.Error("the deleted contact is gone after 241 h; want 720 h")
	}
	w.emulator.Advance(480 * time.Hour)
	if c, _ := w.documents(deleted); c != nil {
		t.Error("the deleted contact is there after 721 h")
	}
	if _, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: kept}}); err != nil {
		t.Errorf("the other contact: %v", err)
	}
}
