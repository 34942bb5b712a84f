package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/rows"
)

// Rows is the rows.Store of a database. It is safe for concurrent use.
type Rows struct{ DB *DB }

var _ rows.Store = Rows{}

// live are the conditions under which a row is there: one that has expired is not any more,
// if swept or not.
const live = `(expires_at IS NULL OR expires_at > now())`

// row asks for one row. What names what was done; missing is the fault if there is none.
func (r Rows) row(ctx context.Context, what string, missing error, into []any, sql string, args ...any) error {
	err := r.DB.used(r.DB.pool.QueryRow(ctx, sql, args...).Scan(into...))
	if errors.Is(err, pgx.ErrNoRows) {
		return missing
	}
	return asFault(what, err)
}

// Aggregate implements rows.Store.
func (r Rows) Aggregate(ctx context.Context, kind string, id uuid.UUID) (rows.Row, error) {
	row := rows.Row{ID: id}
	err := r.row(ctx, "read "+kind+" "+id.String(), fault.Missing(kind, id.String()), []any{&row.Version, &row.Data},
		`SELECT version, data FROM aggregates WHERE id = $1 AND type = $2 AND `+live, id, kind)
	return row, err
}

// Aggregates implements rows.Store.
func (r Rows) Aggregates(ctx context.Context, kind string, after uuid.UUID, limit int) ([]rows.Row, error) {
	found, _ := r.DB.pool.Query(ctx, `SELECT id, version, data FROM aggregates WHERE type = $1 AND NOT deleted AND id > $2 ORDER BY id LIMIT $3`, kind, after, limit)
	page, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (one rows.Row, err error) {
		return one, row.Scan(&one.ID, &one.Version, &one.Data)
	})
	return page, asFault("read a page of type "+kind, r.DB.used(err))
}

// Earlier implements rows.Store.
func (r Rows) Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error) {
	t := aggregate.Tombstone{ID: id}
	err := r.row(ctx, "look for an earlier "+id.String(), fault.Missing("tombstone", id.String()), []any{&t.Version, &t.Sequence},
		`SELECT version, sequence FROM aggregates WHERE id = $1 AND deleted AND recurs AND expires_at <= now()`, id)
	return t, err
}

// Request implements rows.Store.
func (r Rows) Request(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	note := command.Request{ID: id, AggregateID: aggregateID}
	err := r.row(ctx, "read the note of request "+id, fault.Missing("request", id), []any{&note.Hash, &note.CommandID, &note.CreatedAt, &note.Version},
		`SELECT hash, command_id, created_at, version FROM requests WHERE aggregate_id = $1 AND id = $2 AND `+live, aggregateID, id)
	return note, err
}

// Audits implements rows.Store.
func (r Rows) Audits(ctx context.Context, id uuid.UUID, after int64, limit int) ([]query.AuditEntry, error) {
	found, _ := r.DB.pool.Query(ctx, `SELECT version, at, principal, events FROM audits WHERE aggregate_id = $1 AND version > $2 AND `+live+` ORDER BY version LIMIT $3`, id, after, limit)
	entries, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (query.AuditEntry, error) {
		e := query.AuditEntry{AggregateID: id}
		var events []byte
		err := row.Scan(&e.Version, &e.At, &e.Principal, &events)
		if e.At = e.At.UTC(); err != nil {
			return e, err
		}
		if e.Events, err = rows.DecodeAudited(events); err != nil {
			return e, fmt.Errorf("decode audit entry %d: %w", e.Version, err)
		}
		return e, nil
	})
	return entries, asFault("read the audit trail of "+id.String(), r.DB.used(err))
}
