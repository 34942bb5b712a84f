package unitofwork

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/aggregate"
)

// Transaction is a store's part of one unit of work on aggregates of one kind. Errors are
// faults. It serves one goroutine.
type Transaction interface {
	// Journal keeps notes until a Save has stored them.
	command.Journal
	// Single reports that the transaction holds one aggregate only.
	Single() bool
	// SessionToken covers everything that this transaction has read and written; empty if the
	// store has no session tokens.
	SessionToken() string
	// Read returns an aggregate, or NotFound. A store that may answer with an old state must
	// not do so if that state does not match ifMatch.
	Read(ctx context.Context, id uuid.UUID, ifMatch []string) (State, error)
	// Earlier returns the tombstone of a deleted aggregate, or NotFound.
	Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error)
	// Save stores the changes and the notes, everything or nothing. It sets the State After
	// of each change. Faults: those of command.UnitOfWork.Commit.
	Save(ctx context.Context, changes []*Change) error
}

// State is a stored state of an aggregate. The zero value is an aggregate that was never
// stored.
type State struct {
	ETag    string // quoted as in HTTP; empty if it is not known
	Version int64  // of a state that was read, 0 if the store has none
	Tag     string // the store's own name of this state; may be empty
	Data    []byte // only as the result of Read; the store does not keep it
}

// Change is the change of one aggregate.
type Change struct {
	ID uuid.UUID
	// Before is the state that was read. The stored one must be the same, or, if Before was
	// never stored, there must be none.
	Before State
	// After is the state after the change, with its Version. Save sets the rest, without Data.
	After State

	// Unchanged reports that only Before is to be checked. The fields below are not set.
	Unchanged bool

	Commit     aggregate.Commit
	Data       []byte
	Deleted    bool
	Recurs     bool                 // the id may be used again: a deletion leaves a tombstone
	Tombstone  *aggregate.Tombstone // to keep after this change; nil for none
	DeletedTTL time.Duration        // lifetime of a deleted aggregate; negative is for ever
	Events     []Event
}

// Event is an event in its stored form, without the members that the store adds.
type Event struct {
	ID   string
	Key  string // the id of its aggregate
	Data []byte // document.Kind.EventData
}

// Matches evaluates If-Match (RFC 9110 13.1.1) for an aggregate that exists.
func Matches(ifMatch []string, etag string) bool {
	return len(ifMatch) == 0 || slices.Contains(ifMatch, "*") || slices.Contains(ifMatch, etag)
}
