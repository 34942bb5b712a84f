package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"feedbox/changefeed"
)

// Leases is the changefeed.LeaseStore of a database. Its ETags come from a sequence, so one server
// never reuses them. They contain the term of the server, because a standby that is promoted may
// repeat numbers, and must not store the position of an owner that has read from another server.
// It is safe for concurrent use.
type Leases struct{ DB *DB }

// withTerm begins a statement that uses the ETag of a lease, as the text etag.
func (l Leases) withTerm(ctx context.Context, sql string) (string, error) {
	term, err := l.DB.termExpression(ctx)
	return `WITH server AS MATERIALIZED (SELECT ` + term + ` AS term) ` + strings.ReplaceAll(sql, "$etag", `etag || '@' || (SELECT term FROM server)`), err
}

// List implements changefeed.LeaseStore.
func (l Leases) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	sql, err := l.withTerm(ctx, `SELECT id, $etag AS etag, body, term FROM feedbox.leases, server WHERE starts_with(id, $1)`)
	if err != nil {
		return nil, err
	}
	return all[changefeed.Record](ctx, l.DB, "list leases "+prefix, sql, prefix)
}

// Read implements changefeed.LeaseStore.
func (l Leases) Read(ctx context.Context, id string) (changefeed.Record, error) {
	r := changefeed.Record{ID: id}
	err := l.one(ctx, "read", id, changefeed.ErrNotFound, []any{&r.ETag, &r.Body, &r.Term}, `SELECT $etag, body, term FROM feedbox.leases, server WHERE id = $1`, id)
	return r, err
}

// Create implements changefeed.LeaseStore.
func (l Leases) Create(ctx context.Context, r changefeed.Record) (etag string, err error) {
	err = l.one(ctx, "create", r.ID, changefeed.ErrExists, []any{&etag, nil}, `INSERT INTO feedbox.leases (id, body) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING $etag, `+durable, r.ID, string(r.Body))
	return etag, err
}

// Replace implements changefeed.LeaseStore.
func (l Leases) Replace(ctx context.Context, r changefeed.Record) (etag string, err error) {
	err = l.one(ctx, "replace", r.ID, changefeed.ErrETagMismatch, []any{&etag, nil},
		`UPDATE feedbox.leases SET body = $3, etag = DEFAULT WHERE id = $1 AND $etag = $2 RETURNING $etag, `+durable, r.ID, r.ETag, string(r.Body))
	return etag, err
}

// Delete implements changefeed.LeaseStore.
func (l Leases) Delete(ctx context.Context, id, etag string) error {
	return l.one(ctx, "delete", id, changefeed.ErrETagMismatch, []any{&etag, nil}, `DELETE FROM feedbox.leases WHERE id = $1 AND $etag = $2 RETURNING $etag, `+durable, id, etag)
}

// one runs a statement on the lease id. missing is the error if it returns no row. For
// ErrETagMismatch, one checks whether the lease exists at all.
func (l Leases) one(ctx context.Context, verb, id string, missing error, into []any, sql string, args ...any) error {
	what := verb + " the lease " + id
	sql, err := l.withTerm(ctx, sql)
	if err != nil {
		return err
	}
	err = l.DB.row(ctx, what, fmt.Errorf("%s: %w", what, missing), into, sql, args...)
	if errors.Is(err, changefeed.ErrETagMismatch) {
		if _, gone := l.Read(ctx, id); gone != nil {
			return gone
		}
	}
	return err
}
