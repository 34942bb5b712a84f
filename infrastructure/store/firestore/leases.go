package firestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"feedbox/changefeed"
)

// Leases is the changefeed.LeaseStore of a database. The ETag of a record is its update time. It is
// safe for concurrent use.
type Leases struct{ DB *DB }

func recordOf(d *pb.Document) (changefeed.Record, error) {
	return changefeed.Record{ID: text(d, "id"), ETag: tagOf(d), Body: []byte(text(d, "body"))}, nil
}

// List implements changefeed.LeaseStore.
func (l Leases) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	q := find(collectionLeases, "id", 0, condition{"id", atLeast, prefix}, condition{"id", less, prefix + "\U0010FFFF"})
	return all(ctx, l.DB, "list leases "+prefix, q, recordOf)
}

// Read implements changefeed.LeaseStore.
func (l Leases) Read(ctx context.Context, id string) (changefeed.Record, error) {
	found, err := l.DB.get(ctx, l.DB.document(collectionLeases, url.PathEscape(id)))
	if err == nil && found[0] == nil {
		err = changefeed.ErrNotFound
	}
	if err != nil {
		return changefeed.Record{}, fmt.Errorf("read the lease %s: %w", id, err)
	}
	return recordOf(found[0])
}

// Create implements changefeed.LeaseStore.
func (l Leases) Create(ctx context.Context, r changefeed.Record) (string, error) {
	return l.write(ctx, "create", r, absent)
}

// Replace implements changefeed.LeaseStore.
func (l Leases) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	return l.write(ctx, "replace", r, hasTag(r.ETag))
}

func (l Leases) write(ctx context.Context, verb string, r changefeed.Record, when *pb.Precondition) (string, error) {
	w := l.DB.put(collectionLeases, url.PathEscape(r.ID), fields{"id": r.ID, "body": string(r.Body)}.unique(), when)
	tag, err := l.DB.commit(ctx, w)
	if err != nil {
		return "", fmt.Errorf("%s the lease %s: %w", verb, r.ID, l.reason(ctx, r.ID, when, err))
	}
	return tag, nil
}

// Delete implements changefeed.LeaseStore.
func (l Leases) Delete(ctx context.Context, id, etag string) error {
	when := hasTag(etag)
	if _, err := l.DB.commit(ctx, l.DB.remove(collectionLeases, url.PathEscape(id), when)); err != nil {
		return fmt.Errorf("delete the lease %s: %w", id, l.reason(ctx, id, when, err))
	}
	return nil
}

// reason returns the error of a refused write: ErrExists, ErrETagMismatch or ErrNotFound.
func (l Leases) reason(ctx context.Context, id string, when *pb.Precondition, err error) error {
	switch {
	case !refused(err):
		return err
	case when == absent:
		return errors.Join(changefeed.ErrExists, err)
	}
	if _, missing := l.Read(ctx, id); missing != nil {
		return missing
	}
	return errors.Join(changefeed.ErrETagMismatch, err)
}
