package recordstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
)

// Publisher gives a domain event to its handlers, which put it into the outbox. The
// mediator is one.
type Publisher interface {
	// Publish fails when the event has no handler or a handler fails.
	Publish(ctx context.Context, outbox mediator.Outbox, e event.Event) error
}

// UnitsOfWork begins units of work on the aggregates of one kind. It is safe for concurrent
// use.
type UnitsOfWork[A aggregate.Aggregate] struct {
	store     Store
	kind      *document.Kind[A]
	publisher Publisher
	options   Options
}

// NewUnitsOfWork returns units of work on the aggregates of kind, whose events go through
// publisher; nil puts each into the outbox.
func NewUnitsOfWork[A aggregate.Aggregate](store Store, kind *document.Kind[A], publisher Publisher, o *Options) (*UnitsOfWork[A], error) {
	if store == nil {
		return nil, errors.New("rows: units of work need a store")
	}
	kind, err := kind.Checked()
	if err != nil {
		return nil, err
	}
	options := o.withDefaults()
	kind.DeletedTTL = cmp.Or(kind.DeletedTTL, options.DeletedTTL)
	return &UnitsOfWork[A]{store: store, kind: kind, publisher: publisher, options: options}, nil
}

// Begin implements command.UnitsOfWork.
func (u *UnitsOfWork[A]) Begin(session string) (command.UnitOfWork[A], error) {
	if err := sessionFault(session); err != nil {
		return nil, err
	}
	return &UnitOfWork[A]{of: u}, nil
}

// UnitOfWork is one command's view of an aggregate. It serves one goroutine.
type UnitOfWork[A aggregate.Aggregate] struct {
	of        *UnitsOfWork[A]
	aggregate A
	id        uuid.UUID // uuid.Nil: none yet
	read      Row       // as it was read, without data; version 0: not stored yet
	request   *command.Request
	audit     *query.AuditEntry
}

// SessionToken implements command.UnitOfWork.
func (*UnitOfWork[A]) SessionToken() string { return "" }

// Add implements command.UnitOfWork.
func (w *UnitOfWork[A]) Add(ctx context.Context, a A) error {
	if w.id != uuid.Nil {
		return fmt.Errorf("add %s %s: the unit of work has one already", w.of.kind.Noun, a.ID())
	}
	if a.HasDerivedID() {
		switch earlier, err := w.of.store.Earlier(ctx, a.ID()); {
		case err == nil:
			if err := a.Continue(earlier); err != nil {
				return err
			}
		case !fault.Is(err, fault.NotFound):
			return err
		}
	}
	w.aggregate, w.id = a, a.ID()
	return nil
}

// Read implements command.UnitOfWork. It returns the same aggregate each time.
func (w *UnitOfWork[A]) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (none A, err error) {
	if w.id == uuid.Nil {
		a, row, err := w.of.read(ctx, id)
		if err != nil {
			return none, err
		}
		row.Data = nil // the aggregate may have its memory
		w.aggregate, w.id, w.read = a, id, row
	}
	if w.id != id {
		return none, fmt.Errorf("read %s %s: the unit of work has another one, %s", w.of.kind.Noun, id, w.id)
	}
	if !w.aggregate.Deleted() && !matches(ifMatch, etag(w.read.Version)) {
		return none, w.of.kind.ChangedByAnother()
	}
	return w.aggregate, nil
}

func (u *UnitsOfWork[A]) read(ctx context.Context, id uuid.UUID) (a A, row Row, err error) {
	row, err = u.store.Aggregate(ctx, u.kind.Type, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return a, row, u.kind.NotFound(id)
	case err != nil:
		return a, row, err
	}
	a, err = u.kind.Restore(id, row.Data)
	return a, row, err
}

// NoteRequest implements command.Journal.
func (w *UnitOfWork[A]) NoteRequest(r command.Request) error {
	w.request = &r
	return nil
}

// FindRequest implements command.Journal.
func (w *UnitOfWork[A]) FindRequest(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	return w.of.store.Request(ctx, aggregateID, id)
}

// NoteAudit implements command.Journal.
func (w *UnitOfWork[A]) NoteAudit(e query.AuditEntry) error {
	w.audit = &e
	return nil
}

// Commit implements command.UnitOfWork.
func (w *UnitOfWork[A]) Commit(ctx context.Context) (command.Receipt, error) {
	if w.id == uuid.Nil {
		return command.Receipt{}, nil
	}
	commit, changed := w.aggregate.Pending()
	if !changed {
		if err := w.confirm(ctx); err != nil {
			return command.Receipt{}, err
		}
		w.request, w.audit = nil, nil
		return command.Receipt{ETag: etag(w.read.Version)}, nil
	}
	c, err := w.change(ctx, commit)
	if err != nil {
		return command.Receipt{}, err
	}
	current, err := w.save(ctx, c)
	if err != nil {
		return command.Receipt{}, err
	}
	w.aggregate.Committed(commit)
	w.read, w.request, w.audit = Row{ID: w.id, Version: commit.Version, Tag: c.Tag}, nil, nil
	if !current {
		return command.Receipt{}, nil
	}
	return command.Receipt{ETag: etag(commit.Version)}, nil
}

// change is what a commit stores.
func (w *UnitOfWork[A]) change(ctx context.Context, commit aggregate.Commit) (*Change, error) {
	kind, options := w.of.kind, &w.of.options
	data, err := kind.Data(w.aggregate, commit)
	if err != nil {
		return nil, err
	}
	events, err := w.collect(ctx, commit)
	if err != nil {
		return nil, err
	}
	return &Change{
		ID: w.id, Type: kind.Type, Read: w.read, Version: commit.Version, Sequence: commit.Sequence, Data: data,
		Deleted: w.aggregate.Deleted(), Recurs: w.aggregate.HasDerivedID(), DeletedTTL: kind.DeletedTTL, Events: events, EventTTL: options.EventTTL,
		Request: w.request, RequestTTL: options.RequestTTL, Audit: w.audit, AuditTTL: options.AuditTTL,
	}, nil
}

// confirm makes sure that the aggregate is as it was read, and stores a note that comes
// without a change.
func (w *UnitOfWork[A]) confirm(ctx context.Context) error {
	if w.request == nil {
		_, row, err := w.of.read(ctx, w.id)
		if err == nil && row.Version != w.read.Version {
			err = w.of.kind.ChangedByAnother()
		}
		return err
	}
	c := &Change{ID: w.id, Type: w.of.kind.Type, Read: w.read, Unchanged: true, Version: w.read.Version, Request: w.request, RequestTTL: w.of.options.RequestTTL}
	_, err := w.save(ctx, c)
	return err
}

// etag is the aggregate's, quoted as in HTTP: its version, which never comes back.
func etag(version int64) string {
	if version == 0 {
		return ""
	}
	return `"` + strconv.FormatInt(version, 10) + `"`
}

// matches evaluates If-Match (RFC 9110 13.1.1) for an aggregate that exists.
func matches(ifMatch []string, etag string) bool {
	return len(ifMatch) == 0 || slices.Contains(ifMatch, "*") || slices.Contains(ifMatch, etag)
}

// sessionFault refuses a session token: there is none.
func sessionFault(token string) error {
	if token == "" {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_session_token", "the session token is not one this service has issued; leave it out or send the last one received")
}
