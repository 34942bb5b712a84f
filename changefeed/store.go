package changefeed

import (
	"context"
	"encoding/json"
)

// LeaseStore keeps the processor's records: leases, the marker that the store
// is initialised, heartbeats of idle hosts. It knows nothing of their content.
// Package leasetest holds the conformance suite.
//
// Everything the processor promises rests on two of its properties:
//
//   - Create is atomic: of any number of callers with one id, one succeeds.
//   - Replace and Delete are atomic compare-and-swap: they take effect if and
//     only if the record's ETag is the one given. Every change gives the record
//     an ETag it never had before, also if the bytes are the same.
//
// Nothing rests on fresh reads: List and Read may return old versions, because
// whatever the processor does about what it read carries the ETag it read.
//
// An error other than ErrExists, ErrNotFound, ErrETagMismatch leaves open
// whether the write took place. Implementations are safe for concurrent use.
type LeaseStore interface {
	// List returns the records whose id starts with prefix, in any order.
	List(ctx context.Context, prefix string) ([]Record, error)
	// Read returns one record or ErrNotFound.
	Read(ctx context.Context, id string) (Record, error)
	// Create stores a new record and returns its ETag, or ErrExists.
	Create(ctx context.Context, record Record) (etag string, err error)
	// Replace stores record.Body if record.ETag is current and returns the new
	// ETag; else ErrETagMismatch, or ErrNotFound.
	Replace(ctx context.Context, record Record) (etag string, err error)
	// Delete removes the record if etag is current; else ErrETagMismatch, or
	// ErrNotFound.
	Delete(ctx context.Context, id, etag string) error
}

// Record is one stored document.
type Record struct {
	ID string
	// ETag is the store's version tag, opaque, never empty once stored.
	ETag string
	// Body is a JSON object with the member "id". A store may add members whose
	// names begin with an underscore, and keeps all others as they are.
	Body json.RawMessage
}
