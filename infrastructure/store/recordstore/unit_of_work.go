package recordstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/unitofwork"
)

// Options tune how aggregates are stored. Nil and zero values are the defaults.
type Options = unitofwork.Options

// CodeOutcomeUnknown is the code of an Unavailable fault after which the change may be stored
// or not.
const CodeOutcomeUnknown = unitofwork.CodeOutcomeUnknown

// UnitsOfWork begins units of work on the aggregates of one kind. It is safe for concurrent
// use.
type UnitsOfWork[A aggregate.Aggregate] = unitofwork.UnitsOfWork[A]

// NewUnitsOfWork returns units of work on the aggregates of kind, whose events go through
// publisher; nil puts each into the outbox.
func NewUnitsOfWork[A aggregate.Aggregate](store Store, kind *document.Kind[A], publisher unitofwork.Publisher, o *Options) (*UnitsOfWork[A], error) {
	if store == nil {
		return nil, errors.New("recordstore: units of work need a store")
	}
	return unitofwork.New(kind, publisher, o.WithDefaults(), func(kind *document.Kind[A], o *Options, sessionToken string) (unitofwork.Transaction, error) {
		return &transaction[A]{store: store, kind: kind, options: o}, sessionFault(sessionToken)
	})
}

// transaction implements unitofwork.Transaction.
type transaction[A aggregate.Aggregate] struct {
	store   Store
	kind    *document.Kind[A]
	options *Options
	request *command.Request
	audit   *query.AuditEntry
}

// Single implements unitofwork.Transaction.
func (*transaction[A]) Single() bool { return true }

// SessionToken implements unitofwork.Transaction.
func (*transaction[A]) SessionToken() string { return "" }

// NoteRequest implements command.Journal.
func (t *transaction[A]) NoteRequest(r command.Request) error {
	t.request = &r
	return nil
}

// FindRequest implements command.Journal.
func (t *transaction[A]) FindRequest(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	return t.store.Request(ctx, aggregateID, id)
}

// NoteAudit implements command.Journal.
func (t *transaction[A]) NoteAudit(e query.AuditEntry) error {
	t.audit = &e
	return nil
}

// Earlier implements unitofwork.Transaction.
func (t *transaction[A]) Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error) {
	return t.store.Earlier(ctx, id)
}

// Read implements unitofwork.Transaction.
func (t *transaction[A]) Read(ctx context.Context, id uuid.UUID, _ []string) (unitofwork.State, error) {
	row, err := t.store.Aggregate(ctx, t.kind.Type, id)
	return unitofwork.State{ETag: etag(row.Version), Version: row.Version, Tag: row.Tag, Data: row.Data}, err
}

// Save implements unitofwork.Transaction. If the aggregate is unchanged, only a note about the
// request is stored.
func (t *transaction[A]) Save(ctx context.Context, changes []*unitofwork.Change) (err error) {
	if len(changes) == 0 {
		return nil
	}
	c := changes[0]
	if c.Unchanged && t.request == nil {
		err = t.confirm(ctx, c)
	} else {
		err = t.save(ctx, c)
	}
	if err == nil {
		t.request, t.audit = nil, nil
	}
	return err
}

// confirm checks that the aggregate is as it was read.
func (t *transaction[A]) confirm(ctx context.Context, c *unitofwork.Change) error {
	row, err := t.store.Aggregate(ctx, t.kind.Type, c.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return t.kind.NotFound(c.ID)
	case err == nil && row.Version != c.Before.Version:
		return t.kind.ChangedByAnother()
	}
	return err
}

// EventDocument returns an event with the members that every document has.
func EventDocument(e unitofwork.Event) string {
	return `{"id":"` + e.ID + `","` + document.KeyMember + `":"` + e.Key + `","type":"` + document.TypeEvent + `","data":` + string(e.Data) + `}`
}

// save stores a change by attempts of the store.
func (t *transaction[A]) save(ctx context.Context, change *unitofwork.Change) error {
	c := &Change{
		Change: change, Type: t.kind.Type, EventTTL: t.options.EventTTL,
		Request: t.request, RequestTTL: t.options.RequestTTL, AuditTTL: t.options.AuditTTL,
	}
	if !c.Unchanged { // an audit entry has the version of a change
		c.Audit = t.audit
	}
	failed := func(err error) unitofwork.Outcome {
		return unitofwork.Outcome{
			Err:     fmt.Errorf("save %s %s with %d events: %w", t.kind.Noun, c.ID, len(c.Events), err),
			Unknown: t.store.Ambiguous(err), Transient: fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Throttled),
		}
	}
	return t.options.Attempt(ctx, func(unknown bool) unitofwork.Outcome {
		err := t.attempt(ctx, c)
		if err == nil {
			c.After.ETag = etag(c.After.Version)
			return unitofwork.Outcome{}
		}
		refusal := t.refusal(c, err)
		switch {
		case refusal == nil:
			return failed(err)
		case !unknown:
			return unitofwork.Outcome{Err: t.vanished(ctx, c, refusal)}
		}
		own, current, err := t.store.Saved(ctx, c)
		switch {
		case err != nil:
			return failed(err)
		case own:
			if current {
				c.After.ETag = etag(c.After.Version)
			}
			return unitofwork.Outcome{}
		}
		return unitofwork.Outcome{Err: refusal}
	})
}

// attempt saves once.
func (t *transaction[A]) attempt(ctx context.Context, c *Change) error {
	ctx, cancel := t.options.WithAttemptTimeout(ctx)
	defer cancel()
	return t.store.Save(ctx, c)
}

// refusal returns the fault of a change that was refused by the stored state; nil for any
// other failure.
func (t *transaction[A]) refusal(c *Change, err error) error {
	switch {
	case errors.Is(err, ErrExists) && c.Before.Version == 0:
		return fault.Wrap(fault.Conflict, "", "there is a "+t.kind.Noun+" of that id already", err)
	case errors.Is(err, ErrExists):
		return fault.Wrap(fault.Conflict, "", "an event or audit entry of this change exists already", err)
	case errors.Is(err, ErrNoted):
		return fault.Wrap(fault.Conflict, "", "the request was answered before", err)
	case errors.Is(err, ErrChanged):
		return t.kind.ChangedByAnother()
	}
	return nil
}

// vanished returns NotFound in place of PreconditionFailed if the aggregate no longer exists.
func (t *transaction[A]) vanished(ctx context.Context, c *Change, refusal error) error {
	if fault.Is(refusal, fault.PreconditionFailed) {
		if _, err := t.store.Aggregate(ctx, c.Type, c.ID); fault.Is(err, fault.NotFound) {
			return t.kind.NotFound(c.ID)
		}
	}
	return refusal
}

// etag is the version, quoted as in HTTP: versions are never reused.
func etag(version int64) string {
	if version == 0 {
		return ""
	}
	return `"` + strconv.FormatInt(version, 10) + `"`
}

// sessionFault refuses any session token, because these stores have none.
func sessionFault(token string) error {
	if token == "" {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_session_token", "the session token is not one this service has issued; leave it out or send the last one received")
}
