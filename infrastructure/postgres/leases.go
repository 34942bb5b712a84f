package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"feedbox/changefeed"
)

// Leases is the changefeed.LeaseStore of a database. Its ETags come from a sequence, so no
// record has one twice. It is safe for concurrent use.
type Leases struct{ DB *DB }

var _ changefeed.LeaseStore = Leases{}

// List implements changefeed.LeaseStore.
func (l Leases) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	rows, _ := l.DB.pool.Query(ctx, `SELECT id, etag, body FROM leases WHERE starts_with(id, $1)`, prefix)
	records, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r changefeed.Record, err error) {
		var etag int64
		err = row.Scan(&r.ID, &etag, &r.Body)
		r.ETag = strconv.FormatInt(etag, 10)
		return r, err
	})
	return records, l.failed("list leases", prefix, err)
}

// Read implements changefeed.LeaseStore.
func (l Leases) Read(ctx context.Context, id string) (changefeed.Record, error) {
	r := changefeed.Record{ID: id}
	var etag int64
	err := l.DB.pool.QueryRow(ctx, `SELECT etag, body FROM leases WHERE id = $1`, id).Scan(&etag, &r.Body)
	r.ETag = strconv.FormatInt(etag, 10)
	if errors.Is(err, pgx.ErrNoRows) {
		err = changefeed.ErrNotFound
	}
	return r, l.failed("read the lease", id, err)
}

// Create implements changefeed.LeaseStore.
func (l Leases) Create(ctx context.Context, r changefeed.Record) (string, error) {
	var etag int64
	err := l.DB.pool.QueryRow(ctx, `INSERT INTO leases (id, body) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING etag`, r.ID, string(r.Body)).Scan(&etag)
	if errors.Is(err, pgx.ErrNoRows) {
		err = changefeed.ErrExists
	}
	return strconv.FormatInt(etag, 10), l.failed("create the lease", r.ID, err)
}

// Replace implements changefeed.LeaseStore.
func (l Leases) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	var etag int64
	err := l.DB.pool.QueryRow(ctx, `UPDATE leases SET body = $3, etag = nextval('tags') WHERE id = $1 AND etag = $2 RETURNING etag`, r.ID, number(r.ETag), string(r.Body)).Scan(&etag)
	if errors.Is(err, pgx.ErrNoRows) {
		err = l.mismatch(ctx, r.ID)
	}
	return strconv.FormatInt(etag, 10), l.failed("replace the lease", r.ID, err)
}

// Delete implements changefeed.LeaseStore.
func (l Leases) Delete(ctx context.Context, id, etag string) error {
	gone, err := l.DB.pool.Exec(ctx, `DELETE FROM leases WHERE id = $1 AND etag = $2`, id, number(etag))
	if err == nil && gone.RowsAffected() == 0 {
		err = l.mismatch(ctx, id)
	}
	return l.failed("delete the lease", id, err)
}

// mismatch tells a record with another ETag from one that is not there.
func (l Leases) mismatch(ctx context.Context, id string) error {
	if _, err := l.Read(ctx, id); err != nil {
		return err
	}
	return changefeed.ErrETagMismatch
}

func (l Leases) failed(what, id string, err error) error {
	if err == nil || errors.Is(err, changefeed.ErrNotFound) || errors.Is(err, changefeed.ErrExists) || errors.Is(err, changefeed.ErrETagMismatch) {
		_ = l.DB.used(nil)
	} else {
		_ = l.DB.used(err)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, id, err)
}

// number is the version that an ETag or a gate has; 0, which none has, if it is no number.
func number(etag string) int64 {
	n, err := strconv.ParseInt(etag, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
