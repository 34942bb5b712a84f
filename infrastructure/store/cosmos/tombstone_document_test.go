package cosmos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// raw returns all documents of a contact's partition.
func (w *world) raw(id uuid.UUID) []string {
	w.t.Helper()
	var all []string
	pager := w.container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKeyString(id.String()), nil)
	for pager.More() {
		page, err := pager.NextPage(w.t.Context())
		must(w.t, err)
		for _, item := range page.Items {
			all = append(all, string(item))
		}
	}
	return all
}

// A creation that is repeated after its deleted contact has expired makes a new contact with the
// same id. Version and sequence continue, because consumers know the id.
func TestCreationAfterExpiryContinuesTheVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{audit: true})
	in := john()
	in.Sender = command.Sender{Principal: "alice", IdempotencyKey: "k"}
	for life := range int64(3) {
		out, err := mediator.Send(t.Context(), w.app, in)
		must(t, err)
		id := out.Contact.ID
		if out.Replayed || out.ETag == "" || out.Contact.Version != 3*life+1 {
			t.Fatalf("life %d begins with %+v", life, out)
		}
		if again, err := mediator.Send(t.Context(), w.app, in); err != nil || !again.Replayed || again.ETag != out.ETag {
			t.Errorf("repeat: %+v, %v; want the contact that was created, with its ETag", again, err)
		}
		_, err = w.rename(t.Context(), id, "Jane")
		must(t, err)
		deleted, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
		if err != nil || deleted.Version != 3*life+3 {
			t.Fatalf("deleted as %+v, %v", deleted, err)
		}
		for _, stored := range w.raw(id) {
			if !strings.Contains(stored, `"action"`) && (strings.Contains(stored, "Doe") || strings.Contains(stored, "Contoso")) {
				t.Errorf("right after the deletion there is %s", stored)
			}
		}
		if _, err := mediator.Send(t.Context(), w.app, in); !fault.Is(err, fault.Gone) {
			t.Errorf("a repeat while the deleted contact is kept: %v", err)
		}
		w.emulator.Advance(239 * time.Hour)
		for _, stored := range w.raw(id) {
			if m, isEvent, err := (document.EventDecoder{}).Decode([]byte(stored)); err != nil || isEvent && (m.Sequence <= 3*life || m.Sequence > 3*life+3) {
				t.Errorf("life %d: the relay reads %+v, %v", life, m, err)
			}
			if strings.Contains(stored, `"tombstone"`) && strings.Contains(stored, `"action"`) {
				t.Errorf("a tombstone looks like an event: %s", stored)
			}
		}
		w.emulator.Advance(482 * time.Hour)
		// The rest has no personal data, and no reader finds a contact.
		left := slices.DeleteFunc(w.raw(id), func(document string) bool { return strings.Contains(document, `"auditEntry"`) })
		if len(left) != 1 || !strings.Contains(left[0], `"type":"tombstone"`) || !strings.Contains(left[0], `"ttl":-1`) ||
			strings.Contains(left[0], "Doe") || strings.Contains(left[0], "Contoso") || strings.Contains(left[0], "Hash") {
			t.Errorf("after the erasure there is %q", left)
		}
		if _, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id}}); !fault.Is(err, fault.NotFound) {
			t.Errorf("read: %v", err)
		}
		if _, err := w.rename(t.Context(), id, "Joan"); !fault.Is(err, fault.NotFound) {
			t.Errorf("change: %v", err)
		}
		if page, err := mediator.Send(t.Context(), w.app, contacts.ReadContacts{PageSize: 10}); err != nil || len(page.Items) != 0 {
			t.Errorf("list: %+v, %v", page, err)
		}
	}
}

// Random ids are never reused, so nothing of their contacts is kept.
func TestRandomIDLeavesNoTombstone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	_, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
	must(t, err)
	w.emulator.Advance(721 * time.Hour)
	if left := w.raw(id); len(left) != 0 {
		t.Errorf("there is %q", left)
	}
}

// A lost reply to a creation that continues a deleted contact is resolved like any other.
func TestLostReplyToAContinuedCreationIsResolved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	in := john()
	in.IdempotencyKey = "k"
	out, err := mediator.Send(t.Context(), w.app, in)
	must(t, err)
	_, err = mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: out.Contact.ID}})
	must(t, err)
	w.emulator.Advance(721 * time.Hour)
	w.wire.follow(once(dropReply))
	again, err := mediator.Send(t.Context(), w.app, in)
	if err != nil || again.Contact.Version != 3 || again.ETag == "" {
		t.Errorf("%+v, %v", again, err)
	}
	w.wire.follow(nil)
	for _, stored := range w.raw(out.Contact.ID) {
		m, isEvent, err := (document.EventDecoder{}).Decode([]byte(stored))
		if err != nil || isEvent && (m.Sequence != 3 || m.Action != contact.ActionCreated) {
			t.Errorf("the relay reads %+v, %v", m, err)
		}
	}
}
