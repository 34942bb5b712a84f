package cosmos_test

import (
	"io"
	"net/http"
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

// A failed change leaves no note: a repeated request makes the change and is not answered as a
// replay.
func TestNoteIsStoredOnlyWithItsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	created := w.create()
	rename := func() (command.Updated, error) {
		return mediator.Send(t.Context(), w.app, contacts.UpdateName{
			Target: command.Target{
				ID: created.Contact.ID, IfMatch: []string{created.ETag}, Sender: command.Sender{IdempotencyKey: "k"},
			},
			FirstName: "Jane", LastName: "Doe",
		})
	}
	w.wire.follow(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF // no transaction arrives
	})
	if _, err := rename(); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("a change that never arrived: %v", err)
	}
	w.wire.follow(nil)
	out, err := rename()
	if err != nil || out.Replayed || out.Version != 2 {
		t.Errorf("the repeat: %+v, %v; want the change made now", out, err)
	}
	if c, events := w.documents(created.Contact.ID); c.Data.Name.FirstName != "Jane" || len(events) != 2 {
		t.Errorf("stored %+v, events %v", c, actionsOf(events))
	}
}

// Notes belong to the next commit. A second commit of the unit of work stores only newer notes.
func TestNotesBelongToOneCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	work, err := w.work.Begin("")
	must(t, err)
	c, err := work.Read(t.Context(), id, nil)
	must(t, err)
	for version, first := range []string{"Jane", "Joan", "Jean"} {
		if version > 0 { // the first commit and the last have none
			must(t, work.NoteRequest(command.Request{ID: first, AggregateID: id, CommandID: uuid.New(), CreatedAt: time.Now()}))
			must(t, work.NoteAudit(query.AuditEntry{AggregateID: id, Version: int64(version) + 2, At: time.Now(), Principal: first}))
		}
		n, _ := contact.NewName(first, "Doe")
		must(t, c.UpdateName(n, uuid.New(), time.Now()))
		if _, err = work.Commit(t.Context()); err != nil {
			t.Fatalf("commit %d: %v", version+1, err)
		}
	}
	n, _ := contact.NewName("June", "Doe")
	must(t, c.UpdateName(n, uuid.New(), time.Now()))
	_, err = work.Commit(t.Context())
	must(t, err)
	audit, err := cosmos.NewAuditReader(w.container)
	must(t, err)
	page, err := audit.Audit(t.Context(), id, 10, "", "")
	must(t, err)
	if len(page.Entries) != 2 || page.Entries[0].Principal != "Joan" || page.Entries[1].Principal != "Jean" {
		t.Errorf("audit trail %+v, want an entry of each commit that noted one", page.Entries)
	}
}
