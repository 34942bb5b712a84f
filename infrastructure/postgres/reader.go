package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"feedbox/application/query"
	"feedbox/domain/fault"
)

// View says how aggregates of one kind are read as states S, and listed as items I. All
// fields but Noun are required.
type View[S, I any] struct {
	// Type is that of the kind.
	Type string
	// Noun is what people call such an aggregate, in faults. Default: Type.
	Noun string
	// Decode returns the state that is stored as data, the id in it, and whether it is
	// deleted. It may keep the memory of data.
	Decode func(data []byte) (s S, id uuid.UUID, deleted bool, err error)
	// Item makes an item of a listing.
	Item func(s S, etag string) I
}

// Reader reads aggregates of one kind for queries: one by its id, or page by page, in the
// order of their ids. It is safe for concurrent use.
type Reader[S, I any] struct {
	db   *DB
	view View[S, I]
}

// NewReader returns a reader of the aggregates in db.
func NewReader[S, I any](db *DB, v View[S, I]) (*Reader[S, I], error) {
	if db == nil || v.Type == "" || v.Decode == nil || v.Item == nil {
		return nil, errors.New("postgres: a reader needs a DB, and a view with Type, Decode and Item")
	}
	if v.Noun == "" {
		v.Noun = v.Type
	}
	return &Reader[S, I]{db, v}, nil
}

// Read implements query.Reader.
func (r *Reader[S, I]) Read(ctx context.Context, id uuid.UUID, ifNoneMatch, session string) (found query.Found[S], err error) {
	if err := sessionFault(session); err != nil {
		return found, err
	}
	var version int64
	var data []byte
	err = r.db.used(r.db.pool.QueryRow(ctx, `SELECT version, data FROM aggregates WHERE id = $1 AND type = $2 AND `+live, id, r.view.Type).Scan(&version, &data))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return found, fault.Missing(r.view.Noun, id.String())
	case err != nil:
		return found, asFault("read "+r.view.Noun+" "+id.String(), err)
	}
	found.ETag = etag(version)
	if found.ETag == ifNoneMatch {
		return query.Found[S]{}, fault.New(fault.NotModified, "", "the "+r.view.Noun+" has not changed")
	}
	var inside uuid.UUID
	if found.State, inside, found.Deleted, err = r.view.Decode(data); err == nil && inside != id {
		err = fmt.Errorf("its data has the id %s", inside)
	}
	if err != nil {
		return query.Found[S]{}, fmt.Errorf("decode %s %s: %w", r.view.Noun, id, err)
	}
	return found, nil
}

// Page implements query.Pager. The continuation is the id of the last aggregate of the page
// before.
func (r *Reader[S, I]) Page(ctx context.Context, size int, continuation, session string) (page query.Page[I], err error) {
	if err := sessionFault(session); err != nil {
		return page, err
	}
	after := uuid.Nil
	if continuation != "" {
		if after, err = uuid.Parse(continuation); err != nil {
			return page, continuationFault(err)
		}
	}
	what := "read a page of type " + r.view.Type
	rows, _ := r.db.pool.Query(ctx, `SELECT id, version, data FROM aggregates WHERE type = $1 AND NOT deleted AND id > $2 ORDER BY id LIMIT $3`, r.view.Type, after, size+1)
	page.Items = make([]I, 0, size)
	var last, id uuid.UUID
	var version int64
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &version, &data}, func() error {
		if len(page.Items) == size {
			page.Continuation = last.String()
			return nil
		}
		s, _, _, err := r.view.Decode(data)
		if err != nil {
			return fmt.Errorf("decode %s %s: %w", r.view.Noun, id, err)
		}
		data, last = nil, id // the state may keep the memory
		page.Items = append(page.Items, r.view.Item(s, etag(version)))
		return nil
	})
	if r.db.used(err) != nil {
		return query.Page[I]{}, asFault(what, err)
	}
	return page, nil
}

func continuationFault(err error) error {
	return fault.Wrap(fault.Invalid, "invalid_continuation", "the continuation is not one this service has issued; start from the first page", err)
}

// AuditReader reads audit trails. It is safe for concurrent use.
type AuditReader struct{ DB *DB }

var _ query.AuditReader = AuditReader{}

// auditedEvent is an event in the trail as it is stored.
type auditedEvent struct {
	ID       uuid.UUID `json:"id"`
	Action   string    `json:"action"`
	Sequence int64     `json:"sequence"`
}

func auditedOf(events []query.AuditedEvent) []auditedEvent {
	stored := make([]auditedEvent, len(events))
	for i, e := range events {
		stored[i] = auditedEvent(e)
	}
	return stored
}

// Audit implements query.AuditReader. The continuation is the version of the last entry.
func (r AuditReader) Audit(ctx context.Context, id uuid.UUID, size int, continuation, session string) (page query.AuditPage, err error) {
	if err := sessionFault(session); err != nil {
		return page, err
	}
	after := int64(0)
	if continuation != "" {
		if after, err = strconv.ParseInt(continuation, 10, 64); err != nil {
			return page, continuationFault(err)
		}
	}
	rows, _ := r.DB.pool.Query(ctx, `SELECT version, at, principal, events FROM audits WHERE aggregate_id = $1 AND version > $2 AND `+live+` ORDER BY version LIMIT $3`, id, after, size+1)
	var at time.Time
	e := query.AuditEntry{AggregateID: id}
	var events []byte
	_, err = pgx.ForEachRow(rows, []any{&e.Version, &at, &e.Principal, &events}, func() error {
		if len(page.Entries) == size {
			page.Continuation = strconv.FormatInt(page.Entries[size-1].Version, 10)
			return nil
		}
		var stored []auditedEvent
		if err := json.Unmarshal(events, &stored); err != nil {
			return fmt.Errorf("decode audit entry %d: %w", e.Version, err)
		}
		e.At, e.Events = at.UTC(), nil
		for _, one := range stored {
			e.Events = append(e.Events, query.AuditedEvent(one))
		}
		page.Entries = append(page.Entries, e)
		return nil
	})
	if r.DB.used(err) != nil {
		return query.AuditPage{}, asFault("read the audit trail of "+id.String(), err)
	}
	return page, nil
}
