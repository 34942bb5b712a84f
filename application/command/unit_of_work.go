package command

import (
	"context"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
)

// UnitsOfWork starts units of work. It is safe for concurrent use.
type UnitsOfWork[A aggregate.Aggregate] interface {
	// Begin returns a unit of work whose reads see at least the writes that the session
	// token covers. An empty token covers none; a malformed one returns fault.Invalid.
	Begin(sessionToken string) (UnitOfWork[A], error)
}

// UnitOfWork collects the changes of one command to one aggregate and stores them in one
// transaction. It is not safe for concurrent use. Without a commit nothing is written.
type UnitOfWork[A aggregate.Aggregate] interface {
	Journal
	// Add adds a new aggregate for the commit to store. It continues the version and
	// sequence of an erased aggregate of the same id. Faults: Throttled, Unavailable.
	Add(ctx context.Context, a A) error
	// Read returns the aggregate; the commit stores its changes. If ifMatch is not empty
	// and contains neither the aggregate's ETag nor "*", it returns PreconditionFailed.
	//
	// A deleted aggregate is returned as such, whatever ifMatch is. Faults: NotFound,
	// PreconditionFailed, Throttled, Unavailable.
	Read(ctx context.Context, id uuid.UUID, ifMatch []string) (A, error)
	// Commit stores the pending changes of the aggregate and its events in one
	// transaction. If nothing is pending it writes nothing, but checks that the aggregate
	// has not changed since it was read.
	//
	// Faults: Conflict (an aggregate of that id exists), PreconditionFailed (it was changed
	// since it was read), NotFound (it was erased since), TooLarge, Throttled, Unavailable
	// (code "outcome_unknown" if the commit may have been stored).
	Commit(ctx context.Context) (Receipt, error)
	// SessionToken covers everything that this unit of work has seen, including the state
	// that made a commit fail. It may be empty.
	SessionToken() string
}

// Receipt is the result of a commit.
type Receipt struct {
	// ETag is the ETag of the aggregate, quoted as in HTTP. It is empty if the answer to the
	// commit was lost and the aggregate has changed since.
	ETag string
	// SessionToken lets a later read see this commit. It may be empty.
	SessionToken string
}
