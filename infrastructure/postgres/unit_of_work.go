package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"feedbox/application/command"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/document"
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
	db        *DB
	kind      *document.Kind[A]
	publisher Publisher
	options   Options
}

// NewUnitsOfWork returns units of work on the aggregates of kind, whose events go through
// publisher; nil puts each into the outbox.
func NewUnitsOfWork[A aggregate.Aggregate](db *DB, kind *document.Kind[A], publisher Publisher, o *Options) (*UnitsOfWork[A], error) {
	if db == nil {
		return nil, errNotMade
	}
	kind, err := kind.Checked()
	if err != nil {
		return nil, err
	}
	options := o.withDefaults()
	kind.DeletedTTL = cmp.Or(kind.DeletedTTL, options.DeletedTTL)
	return &UnitsOfWork[A]{db: db, kind: kind, publisher: publisher, options: options}, nil
}

// Begin implements command.UnitsOfWork. There are no session tokens: a read sees every
// commit that was acknowledged before it.
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
	version   int64     // as it was read; 0: not stored yet
	events    []storedEvent
	request   *command.Request
	audit     *query.AuditEntry
}

// storedEvent is an event of the commit.
type storedEvent struct {
	id       string
	document string
}

// SessionToken implements command.UnitOfWork.
func (*UnitOfWork[A]) SessionToken() string { return "" }

// Add implements command.UnitOfWork.
func (w *UnitOfWork[A]) Add(ctx context.Context, a A) error {
	if w.id != uuid.Nil {
		return fmt.Errorf("add %s %s: the unit of work has one already", w.of.kind.Noun, a.ID())
	}
	if a.Recurs() {
		earlier := aggregate.Tombstone{ID: a.ID()}
		err := w.of.db.used(w.of.db.pool.QueryRow(ctx, `SELECT version, sequence FROM aggregates WHERE id = $1 AND deleted AND recurs AND expires_at <= now()`, a.ID()).
			Scan(&earlier.Version, &earlier.Sequence))
		switch {
		case err == nil:
			if err := a.Continue(earlier); err != nil {
				return err
			}
		case !errors.Is(err, pgx.ErrNoRows):
			return asFault("look for an earlier "+w.of.kind.Noun+" "+a.ID().String(), err)
		}
	}
	w.aggregate, w.id = a, a.ID()
	return nil
}

// Read implements command.UnitOfWork. It returns the same aggregate each time.
func (w *UnitOfWork[A]) Read(ctx context.Context, id uuid.UUID, ifMatch []string) (none A, err error) {
	if w.id == uuid.Nil {
		a, version, err := w.of.read(ctx, id)
		if err != nil {
			return none, err
		}
		w.aggregate, w.id, w.version = a, id, version
	}
	if w.id != id {
		return none, fmt.Errorf("read %s %s: the unit of work has another one, %s", w.of.kind.Noun, id, w.id)
	}
	if !w.aggregate.Deleted() && !matches(ifMatch, etag(w.version)) {
		return none, w.of.kind.ChangedByAnother()
	}
	return w.aggregate, nil
}

// live are the conditions under which a row is an aggregate: one that has expired is not
// there any more, if swept or not.
const live = `(expires_at IS NULL OR expires_at > now())`

func (u *UnitsOfWork[A]) read(ctx context.Context, id uuid.UUID) (a A, version int64, err error) {
	var data []byte
	err = u.db.used(u.db.pool.QueryRow(ctx, `SELECT version, data FROM aggregates WHERE id = $1 AND type = $2 AND `+live, id, u.kind.Type).Scan(&version, &data))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, 0, u.kind.NotFound(id)
	case err != nil:
		return a, 0, asFault("read "+u.kind.Noun+" "+id.String(), err)
	}
	a, err = u.kind.Restore(id, data)
	return a, version, err
}

// NoteRequest implements command.Journal.
func (w *UnitOfWork[A]) NoteRequest(r command.Request) error {
	w.request = &r
	return nil
}

// NoteAudit implements command.Journal.
func (w *UnitOfWork[A]) NoteAudit(e query.AuditEntry) error {
	w.audit = &e
	return nil
}

// outbox puts domain events into one commit.
type outbox struct {
	encode      func(e event.Event, traceparent string) ([]byte, error)
	traceparent func(ctx context.Context) string
	events      []storedEvent
}

// Add implements mediator.Outbox.
func (o *outbox) Add(ctx context.Context, e event.Event) error {
	data, err := o.encode(e, o.traceparent(ctx))
	if err != nil {
		return err
	}
	meta := e.Metadata()
	id := meta.ID.String()
	text := make([]byte, 0, len(data)+160)
	text = append(text, `{"id":"`...)
	text = append(text, id...)
	text = append(text, `","`+document.KeyMember+`":"`...)
	text = append(text, meta.AggregateID.String()...)
	text = append(text, `","type":"`+document.TypeEvent+`","data":`...)
	text = append(append(text, data...), '}')
	o.events = append(o.events, storedEvent{id, string(text)})
	return nil
}

// collect has each event of the commit put into the outbox. Events of an earlier try of the
// same commit are made anew, and are the same.
func (w *UnitOfWork[A]) collect(ctx context.Context, commit aggregate.Commit) error {
	o := &outbox{encode: w.of.kind.EventData, traceparent: w.of.options.Traceparent}
	for _, e := range commit.Events {
		var err error
		if w.of.publisher == nil {
			err = o.Add(ctx, e)
		} else {
			err = w.of.publisher.Publish(ctx, o, e)
		}
		id := e.Metadata().ID.String()
		if err == nil && !slices.ContainsFunc(o.events, func(s storedEvent) bool { return s.id == id }) {
			err = fmt.Errorf("no handler has put %s into the outbox, it would be lost", e.Action())
		}
		if err != nil {
			return fmt.Errorf("commit %s %s: %w", w.of.kind.Noun, w.id, err)
		}
	}
	w.events = o.events
	return nil
}

// Commit implements command.UnitOfWork.
func (w *UnitOfWork[A]) Commit(ctx context.Context) (command.Receipt, error) {
	if w.id == uuid.Nil {
		return command.Receipt{}, nil
	}
	commit, changed := w.aggregate.Pending()
	if !changed {
		return command.Receipt{ETag: etag(w.version)}, w.confirm(ctx)
	}
	if err := w.collect(ctx, commit); err != nil {
		return command.Receipt{}, err
	}
	s, err := w.changing(commit)
	if err != nil {
		return command.Receipt{}, err
	}
	current, err := w.save(ctx, s, commit.Version)
	if err != nil {
		return command.Receipt{}, err
	}
	w.aggregate.Committed(commit)
	w.version, w.events, w.request, w.audit = commit.Version, nil, nil, nil
	if !current {
		return command.Receipt{}, nil
	}
	return command.Receipt{ETag: etag(commit.Version)}, nil
}

// confirm makes sure that the aggregate is as it was read, and stores a note that comes
// without a change.
func (w *UnitOfWork[A]) confirm(ctx context.Context) error {
	if w.request == nil {
		_, version, err := w.of.read(ctx, w.id)
		if err == nil && version != w.version {
			err = w.of.kind.ChangedByAnother()
		}
		return err
	}
	s := &statement{}
	s.add(`WITH changed AS (SELECT version FROM aggregates WHERE id = `, w.id, ` AND type = `, w.of.kind.Type, ` AND version = `, w.version, ` AND `+live+`)`)
	w.addNotes(s)
	if _, err := w.save(ctx, s, w.version); err != nil {
		return err
	}
	w.request, w.audit = nil, nil
	return nil
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
