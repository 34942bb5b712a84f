package cosmos_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
)

func TestReadContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	created := w.create()
	id := created.Contact.ID
	out, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id, SessionToken: created.SessionToken}})
	must(t, err)
	created.Contact.CreatedAt = created.Contact.CreatedAt.UTC()
	out.Contact.CreatedAt = out.Contact.CreatedAt.UTC()
	if diff := cmp.Diff(created.Contact, out.Contact); diff != "" {
		t.Errorf("read (-created +read):\n%s", diff)
	}
	if out.ETag != created.ETag || out.SessionToken == "" {
		t.Errorf("ETag %s, session %q; created with %s", out.ETag, out.SessionToken, created.ETag)
	}
	_, err = mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id, IfNoneMatch: []string{created.ETag}}})
	if !fault.Is(err, fault.NotModified) {
		t.Errorf("If-None-Match with its ETag: %v", err)
	}
	_, err = w.rename(t.Context(), id, "Jane")
	must(t, err)
	if _, err = mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id, IfNoneMatch: []string{created.ETag}}}); err != nil {
		t.Errorf("If-None-Match with an old ETag: %v", err)
	}
	_, err = mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
	must(t, err)
	for _, missing := range []uuid.UUID{id, uuid.New()} {
		if _, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: missing}}); !fault.Is(err, fault.NotFound) {
			t.Errorf("a deleted or unknown contact: %v", err)
		}
	}
}

// A session token ahead of the store is a transient failure, not a missing contact.
func TestReadAheadOfTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	ahead := "0:-1#999999999"
	_, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id, SessionToken: ahead}})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v; want unavailable", err)
	}
	_, err = mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: id, SessionToken: "gibberish"}})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("%v; want invalid", err)
	}
}

func TestPagesShowEveryContactOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{Partitions: 4}})
	want := map[uuid.UUID]contacts.ContactItem{}
	session := ""
	for i := range 23 {
		in := john()
		in.FirstName = fmt.Sprintf("John %d", i)
		in.SessionToken = session
		if i%2 == 0 {
			address := fmt.Sprintf("john%d@contoso.com", i)
			in.Email = &address
		}
		out, err := mediator.Send(t.Context(), w.app, in)
		must(t, err)
		session = out.SessionToken
		want[out.Contact.ID] = contacts.ContactItem{
			ID: out.Contact.ID, Email: in.Email, FullName: in.FirstName + " Doe", CompanyName: "Contoso", ETag: out.ETag,
		}
	}
	for id := range want { // one deleted contact is not shown
		_, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
		must(t, err)
		delete(want, id)
		break
	}
	for _, size := range []int{1, 7, 100} {
		seen := map[uuid.UUID]contacts.ContactItem{}
		in := contacts.ReadContacts{PageSize: size, SessionToken: session}
		for pages := 1; ; pages++ {
			out, err := mediator.Send(t.Context(), w.app, in)
			must(t, err)
			if len(out.Items) > size {
				t.Errorf("a page of %d has %d items", size, len(out.Items))
			}
			for _, item := range out.Items {
				if _, twice := seen[item.ID]; twice {
					t.Errorf("%s is shown twice", item.ID)
				}
				seen[item.ID] = item
			}
			if out.Continuation == "" {
				break
			}
			if in.Continuation = out.Continuation; pages > 40 {
				t.Fatal("the pages do not end")
			}
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("page size %d (-want +got):\n%s", size, diff)
		}
	}
}

func TestForeignContinuationIsInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	_, err := mediator.Send(t.Context(), w.app, contacts.ReadContacts{Continuation: "gibberish"})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("%v; want invalid", err)
	}
}
