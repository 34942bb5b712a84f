package postgres

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
)

// Records is the recordstore.Store of a database. It is safe for concurrent use.
type Records struct{ DB *DB }

// live is the condition of a row that has not expired. An expired row does not count, even if it
// was not swept yet.
const live = `(expires_at IS NULL OR expires_at > now())`

// Aggregate implements recordstore.Store.
func (r Records) Aggregate(ctx context.Context, kind string, id uuid.UUID) (recordstore.Record, error) {
	row := recordstore.Record{ID: id}
	err := r.DB.row(ctx, "read "+kind+" "+id.String(), fault.Missing(kind, id.String()), []any{&row.Version, &row.Data},
		`SELECT version, data FROM feedbox.aggregates WHERE id = $1 AND type = $2 AND `+live, id, kind)
	return row, err
}

// Aggregates implements recordstore.Store.
func (r Records) Aggregates(ctx context.Context, kind string, after uuid.UUID, limit int) ([]recordstore.Record, error) {
	return all[recordstore.Record](ctx, r.DB, "read a page of type "+kind,
		`SELECT id, version, data, '' AS tag FROM feedbox.aggregates WHERE type = $1 AND NOT deleted AND id > $2 ORDER BY id LIMIT $3`, kind, after, limit)
}

// Earlier implements recordstore.Store.
func (r Records) Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error) {
	t := aggregate.Tombstone{ID: id}
	err := r.DB.row(ctx, "look for an earlier "+id.String(), fault.Missing("tombstone", id.String()), []any{&t.Version, &t.Sequence},
		`SELECT version, sequence FROM feedbox.aggregates WHERE id = $1 AND deleted AND recurs AND expires_at <= now()`, id)
	return t, err
}

// Request implements recordstore.Store.
func (r Records) Request(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	note := command.Request{ID: id, AggregateID: aggregateID}
	err := r.DB.row(ctx, "read the note of request "+id, fault.Missing("request", id), []any{&note.Hash, &note.CommandID, &note.CreatedAt, &note.Version},
		`SELECT hash, command_id, created_at, version FROM feedbox.requests WHERE aggregate_id = $1 AND id = $2 AND `+live, aggregateID, id)
	return note, err
}

// Audits implements recordstore.Store.
func (r Records) Audits(ctx context.Context, id uuid.UUID, after int64, limit int) ([]query.AuditEntry, error) {
	return all[query.AuditEntry](ctx, r.DB, "read the audit trail of "+id.String(),
		`SELECT aggregate_id, version, at, principal, events FROM feedbox.audits WHERE aggregate_id = $1 AND version > $2 AND `+live+` ORDER BY version LIMIT $3`, id, after, limit)
}

// Event implements recordstore.Store.
func (r Records) Event(ctx context.Context, key, id string) (e recordstore.StoredEvent, err error) {
	err = r.DB.row(ctx, "read event "+id+" of key "+key, fault.Missing("event", id), []any{&e.Document, &e.At},
		`SELECT document, stored_at FROM feedbox.events WHERE hash = $1 AND id = $2 AND key = $3 AND `+live, recordstore.Hash(key), id, key)
	return e, err
}

// Events implements recordstore.Store.
func (r Records) Events(ctx context.Context, key string) ([]recordstore.StoredEvent, error) {
	return all[recordstore.StoredEvent](ctx, r.DB, "read the events of key "+key,
		`SELECT document, stored_at AS at, '' AS tag, key, id, xid::text::bigint AS lsn FROM feedbox.events WHERE hash = $1 AND key = $2 AND `+live+` ORDER BY xid`, recordstore.Hash(key), key)
}

// ReplaceEvent implements recordstore.Store.
func (r Records) ReplaceEvent(ctx context.Context, key, id string, read recordstore.StoredEvent, document []byte) (bool, error) {
	done, err := r.DB.exec(ctx, `UPDATE feedbox.events SET document = $5 WHERE hash = $1 AND id = $2 AND key = $3 AND document = $4 AND `+durable,
		recordstore.Hash(key), id, key, string(read.Document), string(document))
	return done.RowsAffected() == 1, asFault("replace event "+id+" of key "+key, r.DB.used(err))
}
