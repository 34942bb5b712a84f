package command

import (
	"context"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
)

// UnitsOfWork starts units of work. It is safe for concurrent use.
type UnitsOfWork[A aggregate.Aggregate] interface {
	// Begin returns a unit of work whose reads see at least what the session token
	// stands for. An empty token stands for nothing; a malformed one is
	// fault.Invalid.
	Begin(sessionToken string) (UnitOfWork[A], error)
}

// UnitOfWork collects the changes of one command to one aggregate and stores them in one
// transaction. It serves one goroutine and one commit at a time. Dropping it
// without a commit writes nothing.
type UnitOfWork[A aggregate.Aggregate] interface {
	Journal
	// Add takes a new aggregate, to be stored by the commit. If one of its id was
	// deleted and is gone, the new one continues its version and sequence. Faults:
	// Throttled, Unavailable.
	Add(ctx context.Context, a A) error
	// Read returns the aggregate; the commit stores what is changed in it. With
	// ifMatch, one of these ETags must be the aggregate's ("*" is any), else
	// PreconditionFailed.
	//
	// A deleted aggregate is returned as such, whatever ifMatch says. Faults: NotFound,
	// PreconditionFailed, Throttled, Unavailable.
	Read(ctx context.Context, id uuid.UUID, ifMatch []string) (A, error)
	// Commit stores the pending changes of what was added or read, with its events:
	// everything or nothing. When nothing is pending it writes nothing,
	// but makes sure that what was read is current.
	//
	// Faults: Conflict (an aggregate of that id exists), PreconditionFailed (what was
	// read here was changed by another), NotFound (it vanished), TooLarge, Throttled,
	// Unavailable (code "outcome_unknown" if it may have been stored all the same).
	Commit(ctx context.Context) (Receipt, error)
	// SessionToken stands for all this unit of work has seen, failed commits
	// included. It may be empty.
	SessionToken() string
}

// Receipt says what a commit has left.
type Receipt struct {
	// ETag is the aggregate's, quoted as in HTTP. It is empty when the commit was made
	// but its answer was lost and the aggregate has been changed by another since.
	ETag string
	// SessionToken makes a later read see this commit. It may be empty.
	SessionToken string
}
