package cosmos_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// A malformed document is an internal fault, which clients do not retry.
func TestMalformedDocumentIsAnInternalFault(t *testing.T) {
	t.Parallel()
	w, baskets := newBaskets(t)
	id := uuid.New()
	for says, stored := range map[string]string{
		"decode document":  `{"id":"` + id.String() + `","partitionKey":"` + id.String() + `","type":7}`,
		"Go value of type": `{"id":"` + id.String() + `","partitionKey":"` + id.String() + `","type":"basket","data":7}`,
		"decode tombstone": `{"id":"tombstone","partitionKey":"` + id.String() + `","type":"tombstone","data":7}`,
	} {
		_, err := w.container.UpsertItem(t.Context(), partition(id.String()), []byte(stored), nil)
		must(t, err)
		work, err := baskets.Work.Begin("")
		must(t, err)
		if strings.Contains(says, "tombstone") {
			b, _ := opening("").Make(id, "hash")
			err = work.Add(t.Context(), b)
		} else {
			_, err = work.Read(t.Context(), id, nil)
		}
		if err == nil || fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want an internal fault with %q", err, says)
		}
	}
}

// A note that cannot be stored fails the commit before anything is sent.
func TestUnencodableNotesFailBeforeSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	far := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) // what JSON cannot hold
	work := w.begin()
	if err := work.NoteRequest(command.Request{ID: "r", AggregateID: id, CreatedAt: far}); err == nil {
		t.Error("a request of the year 10000 is noted")
	}
	if err := work.NoteAudit(query.AuditEntry{AggregateID: id, Version: 1, At: far}); err == nil {
		t.Error("an entry of the year 10000 is noted")
	}
	for name, note := range map[string]func(work command.UnitOfWork[*contact.Contact]) error{
		"a request twice": func(work command.UnitOfWork[*contact.Contact]) error {
			return work.NoteRequest(command.Request{ID: "r", AggregateID: id})
		},
		"an entry twice": func(work command.UnitOfWork[*contact.Contact]) error {
			return work.NoteAudit(query.AuditEntry{AggregateID: id, Version: 2})
		},
	} {
		work, c := w.read(id)
		renamed(t, c, "Jane")
		must(t, note(work))
		must(t, note(work))
		w.wire.follow(nil)
		if _, err := work.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "already") || w.wire.transactions() > 0 {
			t.Errorf("%s: %v after %d transactions", name, err, w.wire.transactions())
		}
	}
}

// A malformed note is an error, not an answered request.
func TestMalformedNoteIsAnInternalFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	id := w.create().Contact.ID
	_, err := w.container.CreateItem(t.Context(), partition(id.String()), []byte(`{"id":"request-r","partitionKey":"`+id.String()+`","data":7}`), nil)
	must(t, err)
	if found, err := w.begin().FindRequest(t.Context(), id, "r"); err == nil || fault.KindOf(err) != fault.Internal {
		t.Errorf("%+v, %v", found, err)
	}
	w.wire.follow(moved)
	if found, err := w.begin().FindRequest(t.Context(), id, "r"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%+v, %v", found, err)
	}
}

// A state that cannot be stored fails the commit before anything is sent.
func TestUnencodableStateFailsBeforeSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	kind := document.JSON[*basket, float64]{
		Type: "basket", State: func(*basket) float64 { return math.NaN() }, Events: basketKind().Events,
		Restore: func(root aggregate.Root, _ float64) (*basket, error) { return &basket{Root: root}, nil },
	}
	baskets, err := cosmos.NewUnitsOfWork(w.container, kind.Kind(), nil, nil)
	must(t, err)
	work, err := baskets.Begin("")
	must(t, err)
	must(t, work.Add(t.Context(), newBasket(t, "")))
	w.wire.follow(nil)
	if _, err := work.Commit(t.Context()); !errors.As(err, new(*json.UnsupportedValueError)) || w.wire.transactions() > 0 {
		t.Errorf("%v after %d transactions", err, w.wire.transactions())
	}
}

type (
	basketOwned struct {
		ID string `json:"basketID"` // as IDMember, in another case
	}
	basketTagged map[string]string
)

func (basketOwned) Action() string  { return "BasketOwnedEvent" }
func (basketTagged) Action() string { return "BasketTaggedEvent" }

// The name that a kind gives to the id of its aggregates is taken, as the other members of all events.
func TestPayloadWithTheIDMemberOfItsKindIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	named := func(member string, codecs ...document.EventCodec) *document.Kind[*basket] {
		whole := basketKind()
		whole.Events = append(whole.Events, codecs...)
		kind := whole.Kind()
		kind.IDMember = member
		return kind
	}
	if _, err := cosmos.NewUnitsOfWork(w.container, named("basketId", document.JSONEvent[basketOwned]()), nil, nil); err == nil || !strings.Contains(err.Error(), "event BasketOwnedEvent") || !strings.Contains(err.Error(), "basketID: the name of the member is taken") {
		t.Errorf("%v, want a refusal at the start", err)
	}
	if _, err := cosmos.NewUnitsOfWork(w.container, named("owner", document.JSONEvent[basketOwned]()), nil, nil); err != nil {
		t.Errorf("%v for a payload without the member", err)
	}
	for _, member := range []string{"sequence", "Action", "hash", "principal"} {
		if _, err := cosmos.NewUnitsOfWork(w.container, named(member), nil, nil); err == nil || !strings.Contains(err.Error(), "IDMember "+member) {
			t.Errorf("%v, want a refusal of the IDMember %s", err, member)
		}
	}
	work, err := cosmos.NewUnitsOfWork(w.container, named("basketId", document.JSONEvent[basketTagged]()), nil, &cosmos.Options{Backoff: -1})
	must(t, err)
	baskets := &command.Service[*basket]{Work: work, IDs: uuid.New, Now: time.Now, Noun: "basket", Namespace: uuid.New()}
	opened, err := baskets.Create(t.Context(), opening(""))
	must(t, err)
	for tag, taken := range map[string]bool{"colour": false, "basketId": true, "BASKETID": true} {
		_, err = baskets.Update(t.Context(), command.Target{ID: opened.Aggregate.ID()}, func(b *basket) error {
			aggregate.Record(&b.Root, basketTagged{tag: "red"}, uuid.New(), time.Now())
			return nil
		})
		if (err != nil) != taken || taken && !strings.Contains(err.Error(), tag+": the name of the member is taken") {
			t.Errorf("a payload with the member %s: %v", tag, err)
		}
	}
}
