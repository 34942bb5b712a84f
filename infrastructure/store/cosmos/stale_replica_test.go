package cosmos_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/fault"
)

// lagging is a replica that answers reads without a session token with an old state of the contact.
func (w *world) lagging(id uuid.UUID) {
	w.t.Helper()
	var (
		old  *http.Response
		body []byte
	)
	w.wire.followReads(func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.Header.Get("x-ms-session-token") != "" {
			return pass()
		}
		if old == nil {
			reply, err := pass()
			if err != nil {
				return nil, err
			}
			if body, err = io.ReadAll(reply.Body); err != nil {
				return nil, err
			}
			_ = reply.Body.Close()
			old = reply
		}
		again := *old
		again.Request, again.Body = r, io.NopCloser(bytes.NewReader(body))
		return &again, nil
	})
	work, err := w.work.Begin("")
	must(w.t, err)
	_, err = work.Read(w.t.Context(), id, nil) // what the replica will remember
	if err != nil && !fault.Is(err, fault.NotFound) {
		w.t.Fatal(err)
	}
}

// A client that is ahead of the replica is not refused.
func TestStaleReplicaDoesNotFailAPrecondition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	w.lagging(out.Contact.ID)
	second, err := w.rename(t.Context(), out.Contact.ID, "Jane", out.ETag)
	must(t, err)
	third, err := w.rename(t.Context(), out.Contact.ID, "Joan", second.ETag)
	if err != nil || third.Version != 3 {
		t.Errorf("%+v, %v; want version 3", third, err)
	}
	if _, err := w.rename(t.Context(), out.Contact.ID, "June", out.ETag); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("an ETag that only the replica takes for current: %v", err)
	}
	if _, events := w.documents(out.Contact.ID); len(events) != 3 {
		t.Errorf("events %v", actionsOf(events))
	}
}

// A contact that the replica does not have yet can be changed.
func TestStaleReplicaDoesNotHideAContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	in := john()
	in.ContactID = uuid.New()
	w.lagging(in.ContactID)
	_, err := mediator.Send(t.Context(), w.app, in)
	must(t, err)
	_, err = w.rename(t.Context(), in.ContactID, "Jane")
	must(t, err)
}

// A change of a stale state is refused by the store and repeated on the current state.
func TestStaleReplicaOnlyDelaysAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	w.lagging(out.Contact.ID)
	for version, first := range []string{"Jane", "Joan", "June"} {
		updated, err := w.rename(t.Context(), out.Contact.ID, first)
		if err != nil || updated.Version != int64(version+2) {
			t.Errorf("%s: %+v, %v", first, updated, err)
		}
	}
	updated, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: out.Contact.ID}})
	if err != nil || updated.Version != 5 {
		t.Errorf("delete: %+v, %v", updated, err)
	}
}

// A command that changes nothing in a stale state may change the current one.
func TestStaleReplicaDoesNotMakeAChangeUnnecessary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	id := out.Contact.ID
	w.lagging(id)
	_, err := w.rename(t.Context(), id, "Jane")
	must(t, err)
	updated, err := w.rename(t.Context(), id, "John") // what the replica still has
	if err != nil || updated.Version != 3 {
		t.Errorf("%+v, %v; want version 3", updated, err)
	}
	if _, err = w.rename(t.Context(), id, "John", out.ETag); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("with an ETag only the replica has: %v", err)
	}
}
