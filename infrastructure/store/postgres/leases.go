package postgres

import (
	"context"
	"errors"
	"fmt"

	"feedbox/changefeed"
)

// Leases is the changefeed.LeaseStore of a database. Its ETags come from a sequence, so they are
// never reused. It is safe for concurrent use.
type Leases struct{ DB *DB }

// List implements changefeed.LeaseStore.
func (l Leases) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	return all[changefeed.Record](ctx, l.DB, "list leases "+prefix, `SELECT id, etag::text, body FROM feedbox.leases WHERE starts_with(id, $1)`, prefix)
}

// Read implements changefeed.LeaseStore.
func (l Leases) Read(ctx context.Context, id string) (changefeed.Record, error) {
	r := changefeed.Record{ID: id}
	err := l.one(ctx, "read", id, changefeed.ErrNotFound, []any{&r.ETag, &r.Body}, `SELECT etag::text, body FROM feedbox.leases WHERE id = $1`, id)
	return r, err
}

// Create implements changefeed.LeaseStore.
func (l Leases) Create(ctx context.Context, r changefeed.Record) (etag string, err error) {
	err = l.one(ctx, "create", r.ID, changefeed.ErrExists, []any{&etag, nil}, `INSERT INTO feedbox.leases (id, body) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING etag::text, `+durable, r.ID, string(r.Body))
	return etag, err
}

// Replace implements changefeed.LeaseStore.
func (l Leases) Replace(ctx context.Context, r changefeed.Record) (etag string, err error) {
	err = l.one(ctx, "replace", r.ID, changefeed.ErrETagMismatch, []any{&etag, nil},
		`UPDATE feedbox.leases SET body = $3, etag = DEFAULT WHERE id = $1 AND etag::text = $2 RETURNING etag::text, `+durable, r.ID, r.ETag, string(r.Body))
	return etag, err
}

// Delete implements changefeed.LeaseStore.
func (l Leases) Delete(ctx context.Context, id, etag string) error {
	return l.one(ctx, "delete", id, changefeed.ErrETagMismatch, []any{&etag, nil}, `DELETE FROM feedbox.leases WHERE id = $1 AND etag::text = $2 RETURNING etag::text, `+durable, id, etag)
}

// one runs a statement on the lease id. missing is the error if it returns no row. For
// ErrETagMismatch, one checks whether the lease exists at all.
func (l Leases) one(ctx context.Context, verb, id string, missing error, into []any, sql string, args ...any) error {
	what := verb + " the lease " + id
	err := l.DB.row(ctx, what, fmt.Errorf("%s: %w", what, missing), into, sql, args...)
	if errors.Is(err, changefeed.ErrETagMismatch) {
		if _, gone := l.Read(ctx, id); gone != nil {
			return gone
		}
	}
	return err
}
