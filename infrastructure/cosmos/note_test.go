package cosmos_test

import (
	"io"
	"net/http"
	"testing"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos"
)

// A change that was not made leaves no note behind: the repeat makes it, and is not
// answered as if it had been made before.
func TestANoteIsStoredWithItsChangeOrNotAtAll(t *testing.T) {
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
