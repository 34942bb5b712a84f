package cosmos_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
)

// dropReply passes the request on and loses the answer.
func dropReply(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
	if reply, err := pass(); err == nil {
		_ = reply.Body.Close()
	}
	return nil, io.ErrUnexpectedEOF
}

// Many concurrent creates under one key, some with lost replies, make one contact and one event.
func TestCreatesUnderOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	w.wire.follow(once(dropReply))
	in := john()
	in.Sender = command.Sender{Principal: "alice", IdempotencyKey: "k"}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // guards the fields below
		first int
		ids   = map[uuid.UUID]bool{}
		etags = map[string]bool{}
	)
	for range 8 {
		wg.Go(func() {
			out, err := mediator.Send(t.Context(), w.app, in)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[out.Contact.ID], etags[out.ETag] = true, true
			if !out.Replayed {
				first++
			}
		})
	}
	wg.Wait()
	if first != 1 || len(ids) != 1 || len(etags) != 1 {
		t.Errorf("%d creates, ids %v, ETags %v; want one of each", first, ids, etags)
	}
	for id := range ids {
		if c, events := w.documents(id); c == nil || !etags[c.ETag] || len(events) != 1 {
			t.Errorf("contact %v, events %v", c, actionsOf(events))
		}
	}
}

func TestUpdatesUnderOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	created := w.create()
	id := created.Contact.ID
	rename := func(first, key string) (command.Updated, error) {
		return mediator.Send(t.Context(), w.app, contacts.UpdateName{
			Target:    command.Target{ID: id, IfMatch: []string{created.ETag}, Sender: command.Sender{IdempotencyKey: key}},
			FirstName: first, LastName: "Doe",
		})
	}
	w.wire.follow(once(dropReply))
	for i := range 3 {
		out, err := rename("Jane", "k1")
		if err != nil || out.Version != 2 || out.Replayed != (i > 0) || out.ETag == "" {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
	}
	if _, err := rename("Joan", "k1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("another request under the key: %v", err)
	}
	if _, err := rename("Joan", "k2"); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("a stale precondition under another key: %v", err)
	}
	if _, events := w.documents(id); len(events) != 2 {
		t.Errorf("events %v", actionsOf(events))
	}
	w.emulator.Advance(25 * time.Hour) // the key is forgotten
	if _, err := rename("Jane", "k1"); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("after 25 h: %v", err)
	}
}

// A keyed command without a change still leaves its note.
func TestIdempotencyKeyWithoutAChangeIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	keyed := contacts.UpdateName{
		Target:    command.Target{ID: id, Sender: command.Sender{IdempotencyKey: "k"}},
		FirstName: "John", LastName: "Doe",
	}
	out, err := mediator.Send(t.Context(), w.app, keyed)
	if err != nil || out.Replayed || out.Version != 1 || out.ETag == "" {
		t.Fatalf("first: %+v, %v", out, err)
	}
	_, err = w.rename(t.Context(), id, "Jane")
	must(t, err)
	out, err = mediator.Send(t.Context(), w.app, keyed)
	if err != nil || !out.Replayed || out.Version != 2 {
		t.Errorf("repeat: %+v, %v", out, err)
	}
	if c, _ := w.documents(id); c.Data.Name.FirstName != "Jane" {
		t.Errorf("the repeat has changed the name to %s", c.Data.Name.FirstName)
	}
}

func TestAuditTrail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{audit: true})
	in := john()
	in.Principal = "alice"
	out, err := mediator.Send(t.Context(), w.app, in)
	must(t, err)
	id := out.Contact.ID
	for i := range 11 {
		_, err := mediator.Send(t.Context(), w.app, contacts.UpdateName{
			Target: command.Target{ID: id, Sender: command.Sender{Principal: "bob"}}, FirstName: fmt.Sprint(i), LastName: "Doe",
		})
		must(t, err)
	}
	_, err = mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
	must(t, err)

	var entries []query.AuditEntry
	read := contacts.ReadAudit{Trail: query.Trail{ID: id, PageSize: 5}}
	for {
		page, err := mediator.Send(t.Context(), w.app, read)
		must(t, err)
		entries = append(entries, page.Entries...)
		if read.Continuation = page.Continuation; read.Continuation == "" {
			break
		}
	}
	_, events := w.documents(id)
	if len(entries) != 13 || len(events) != 13 {
		t.Fatalf("%d entries, %d events; want 13", len(entries), len(events))
	}
	for i, e := range entries {
		principal := "bob"
		switch i {
		case 0:
			principal = "alice"
		case 12:
			principal = ""
		}
		want := query.AuditEntry{
			AggregateID: id, Version: int64(i + 1), At: e.At, Principal: principal,
			Events: []query.AuditedEvent{{ID: uuid.MustParse(events[i].ID), Action: events[i].Data.Action, Sequence: int64(i + 1)}},
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", i, diff)
		}
	}
}

// An update of a stale state has the version of an existing audit entry. It is a lost race, not a
// conflict.
func TestStaleCommitDoesNotConflictOnItsAuditEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{audit: true})
	out := w.create()
	w.lagging(out.Contact.ID)
	_, err := w.rename(t.Context(), out.Contact.ID, "Jane")
	must(t, err)
	_, err = w.rename(t.Context(), out.Contact.ID, "Joan")
	must(t, err)
	page, err := mediator.Send(t.Context(), w.app, contacts.ReadAudit{Trail: query.Trail{ID: out.Contact.ID}})
	must(t, err)
	if len(page.Entries) != 3 {
		t.Errorf("entries %+v", page.Entries)
	}
}

func TestAuditTrailOfUnknownContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	if _, err := mediator.Send(t.Context(), w.app, contacts.ReadAudit{Trail: query.Trail{ID: uuid.New()}}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown contact: %v", err)
	}
	page, err := mediator.Send(t.Context(), w.app, contacts.ReadAudit{Trail: query.Trail{ID: w.create().Contact.ID}})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("a contact without a trail: %+v, %v", page, err)
	}
}

func TestPatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	text := func(s string) contacts.Member { return contacts.Member{Present: true, Text: &s} }
	patched, err := mediator.Send(t.Context(), w.app, contacts.PatchContact{
		Target:    command.Target{ID: out.Contact.ID, IfMatch: []string{out.ETag}},
		FirstName: text("Jane"), Email: text("jane@contoso.com"), City: text("Redmond"),
	})
	must(t, err)
	c, events := w.documents(out.Contact.ID)
	if patched.Version != 2 || c.Data.Version != 2 || c.ETag != patched.ETag || patched.Contact.Company.City != "Redmond" {
		t.Errorf("patched %+v, stored %+v", patched, c)
	}
	for i, want := range []string{contact.ActionCreated, contact.ActionNameUpdated, contact.ActionEmailUpdated, contact.ActionCompanyUpdated} {
		if i >= len(events) || events[i].Data.Action != want || events[i].Data.AggregateVersion != min(int64(i+1), 2) {
			t.Fatalf("events %v", actionsOf(events))
		}
	}
}
