package cosmos_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	contactkind "feedbox/infrastructure/store/document/contacts"
)

// refuse answers a request with a status, without sending it on.
func refuse(status int) plan {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
	}
}

// moved is the answer of a partition that is being moved: Unavailable, and the SDK does not retry.
var moved = refuse(http.StatusGone)

func (w *world) begin() command.UnitOfWork[*contact.Contact] {
	w.t.Helper()
	work, err := w.work.Begin("")
	must(w.t, err)
	return work
}

// read begins a unit of work on one contact.
func (w *world) read(id uuid.UUID) (command.UnitOfWork[*contact.Contact], *contact.Contact) {
	w.t.Helper()
	work := w.begin()
	c, err := work.Read(w.t.Context(), id, nil)
	must(w.t, err)
	return work, c
}

func renamed(t *testing.T, c *contact.Contact, first string) {
	t.Helper()
	n, err := contact.NewName(first, "Doe")
	must(t, err)
	must(t, c.UpdateName(n, uuid.New(), time.Now()))
}

func TestInvalidUnitsOfWorkAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	const long = (1 << 31) * time.Second
	kept := contactkind.Kind()
	kept.DeletedTTL = long
	for says, make := range map[string]func() error{
		"need a container": func() error { _, err := cosmos.NewUnitsOfWork(nil, contactkind.Kind(), w.app, nil); return err },
		"EventTTL is longer": func() error {
			_, err := cosmos.NewUnitsOfWork(w.container, contactkind.Kind(), w.app, &cosmos.Options{EventTTL: long})
			return err
		},
		"DeletedTTL of kind contact is longer": func() error { _, err := cosmos.NewUnitsOfWork(w.container, kept, w.app, nil); return err },
		"RequestTTL is longer": func() error {
			_, err := cosmos.NewOutbox(w.container, &cosmos.OutboxOptions{Options: cosmos.Options{RequestTTL: long}})
			return err
		},
		"session token": func() error { _, err := w.work.Begin("?"); return err },
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want something with %q", err, says)
		}
	}
}

// Read returns an added aggregate, which has the ETag of its commit.
func TestUnitOfWorkTracksAnAggregateOnce(t *testing.T) {
	t.Parallel()
	w, baskets := newBaskets(t)
	work, err := baskets.Work.Begin("")
	must(t, err)
	if receipt, err := work.Commit(t.Context()); err != nil || receipt != (command.Receipt{}) {
		t.Errorf("a commit of nothing: %+v, %v", receipt, err)
	}
	first, second := newBasket(t, ""), newBasket(t, "")
	must(t, work.Add(t.Context(), first))
	if err := work.Add(t.Context(), first); err == nil || !strings.Contains(err.Error(), "has it already") {
		t.Errorf("added twice: %v", err)
	}
	if read, err := work.Read(t.Context(), first.ID(), nil); err != nil || read != first {
		t.Errorf("read %p, %v; want what was added, %p", read, err, first)
	}
	receipt, err := work.Commit(t.Context())
	must(t, err)
	if stored := w.item(first.ID().String(), first.ID().String()); receipt.ETag == "" || stored["_etag"] != receipt.ETag {
		t.Errorf("ETag %s; stored is %v", receipt.ETag, stored["_etag"])
	}
	must(t, work.Add(t.Context(), second))
	if read, err := work.Read(t.Context(), first.ID(), []string{receipt.ETag}); err != nil || read != first {
		t.Errorf("the first after its commit: %p, %v", read, err)
	}
	if receipt, err = work.Commit(t.Context()); err != nil || receipt.ETag != "" {
		t.Errorf("a commit of two has the ETag %q, %v; want none, as it says not of which", receipt.ETag, err)
	}
}

func newBasket(t *testing.T, requestHash string) *basket {
	t.Helper()
	b, err := opening("").Make(uuid.New(), requestHash)
	must(t, err)
	return b
}

// A store that does not answer does not mean a missing aggregate or a lost race.
func TestFailedReadIsNotNotFound(t *testing.T) {
	t.Parallel()
	w, baskets := newBaskets(t)
	work, err := baskets.Work.Begin("")
	must(t, err)
	w.wire.followReads(moved)
	w.wire.follow(nil)
	if _, err := work.Read(t.Context(), uuid.New(), []string{`"any"`}); !fault.Is(err, fault.Unavailable) || w.wire.transactions() != 0 {
		t.Errorf("read: %v, then %d reads of the primary", err, w.wire.transactions())
	}
	if err := work.Add(t.Context(), newBasket(t, "hash")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an id that may have been used: %v", err)
	}
	must(t, work.Add(t.Context(), newBasket(t, ""))) // an id that is used once needs no look
	w.wire.followReads(nil)
	_, err = work.Read(t.Context(), uuid.New(), nil)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "basket_not_found" {
		t.Errorf("a missing one: %v", err)
	}
}

// A commit without a change reports what happened to the aggregate that was read.
func TestCommitWithoutChangeReportsAVanishedAggregate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	work, _ := w.read(id)
	w.wire.follow(moved)
	if _, err := work.Commit(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the primary does not answer: %v", err)
	}
	w.wire.follow(nil)
	_, err := w.container.DeleteItem(t.Context(), partition(id.String()), id.String(), nil)
	must(t, err)
	_, err = work.Commit(t.Context())
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "contact_not_found" {
		t.Errorf("the contact has vanished: %v", err)
	}
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	out := w.create()
	id := out.Contact.ID
	if renamed, err := w.rename(t.Context(), id, "Jane", "*"); err != nil || renamed.Version != 2 {
		t.Errorf("any ETag: %+v, %v", renamed, err)
	}
	_, err := mediator.Send(t.Context(), w.app, contacts.DeleteContact{Target: command.Target{ID: id}})
	must(t, err)
	if _, err := w.rename(t.Context(), id, "Joan", out.ETag); !fault.Is(err, fault.NotFound) {
		t.Errorf("an old ETag of a deleted contact: %v; want that there is none", err)
	}
}

// An aggregate with an unknown ETag is not written.
func TestCommitWithUnknownETagIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{cosmos: &cosmos.Options{Backoff: -1}})
	id := w.create().Contact.ID
	work, c := w.read(id)
	renamed(t, c, "Jane")
	w.wire.follow(once(func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		reply, err := dropReply(r, pass)
		if _, err := w.rename(context.WithoutCancel(t.Context()), id, "Other"); err != nil {
			t.Error(err)
		}
		return reply, err
	}))
	if receipt, err := work.Commit(t.Context()); err != nil || receipt.ETag != "" {
		t.Fatalf("%+v, %v; want no ETag", receipt, err)
	}
	renamed(t, c, "Joan")
	if _, err := work.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "no ETag") {
		t.Errorf("the second commit: %v", err)
	}
	if stored, events := w.documents(id); stored.Data.Name.FirstName != "Other" || len(events) != 3 {
		t.Errorf("stored %+v, events %v", stored, actionsOf(events))
	}
}

// A deletion must know whether there is a tombstone to replace.
func TestDeletionFailsIfTheTombstoneCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	in := john()
	in.IdempotencyKey = "k"
	out, err := mediator.Send(t.Context(), w.app, in)
	must(t, err)
	work, c := w.read(out.Contact.ID)
	must(t, c.Delete(uuid.New(), time.Now()))
	w.wire.follow(moved)
	if _, err := work.Commit(t.Context()); !fault.Is(err, fault.Unavailable) || w.wire.transactions() != 1 {
		t.Errorf("%v after %d transactions; want the read only", err, w.wire.transactions())
	}
	w.wire.follow(nil)
	_, err = work.Commit(t.Context())
	must(t, err)
	if stored := w.item(out.Contact.ID.String(), "tombstone"); stored["ttl"] != -1.0 {
		t.Errorf("tombstone %v", stored)
	}
}
