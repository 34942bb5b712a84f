package command

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
)

// Creation is the input of Create. Make is required.
type Creation[A aggregate.Aggregate] struct {
	// ID is the id of the new aggregate, and must never have been used. uuid.Nil lets the
	// service choose one. It must be uuid.Nil with an idempotency key, because the key
	// determines the id.
	ID uuid.UUID
	// IfMatch is a precondition. It always fails, because a new aggregate has no ETag.
	IfMatch []string
	// SessionToken covers the writes that the client has seen; it may be empty.
	SessionToken string
	Sender
	// Make returns the aggregate with its first event recorded. It passes requestHash to
	// aggregate.New. The hash is empty without a key.
	Make func(id uuid.UUID, requestHash string) (A, error)
	// Unchanged reports whether an aggregate has not changed since its creation. Nil
	// compares its version with 1.
	Unchanged func(a A) bool
	// Parts are the name and the fields of the command. They distinguish a repeat from
	// another request under the same key, and are encoded as JSON.
	Parts []any
}

// Created is the answer of Create.
type Created[A aggregate.Aggregate] struct {
	Aggregate A
	// ETag is empty if the aggregate was changed since the request created it, see
	// Updated.
	ETag         string
	SessionToken string
	// Replayed is true if an earlier request under the same key created the aggregate.
	Replayed bool
}

// Create creates an aggregate.
//
// With an idempotency key, the id is derived from the principal and the key, so that a repeat
// finds the aggregate of the first request. The answer to a repeat is the aggregate in its
// current state, with Replayed set. A repeat returns Gone if the aggregate was deleted, and
// another request under the same key returns Invalid (CodeKeyReused). After the deleted
// aggregate is erased, the request creates a new one that continues its version and sequence.
//
// Faults: those of Make, Invalid (the key), Conflict when ID is taken, Gone (code
// Noun_deleted), PreconditionFailed, and those of UnitOfWork.Commit.
func (s *Service[A]) Create(ctx context.Context, in Creation[A]) (Created[A], error) {
	id, hash, err := s.identify(&in)
	if err != nil {
		return Created[A]{}, err
	}
	work, err := s.Work.Begin(in.SessionToken)
	if err != nil {
		return Created[A]{}, err
	}
	if len(in.IfMatch) > 0 {
		return Created[A]{}, fault.New(fault.PreconditionFailed, "", "there is no "+s.Noun+" yet whose state could match")
	}
	a, err := in.Make(id, hash)
	if err != nil {
		return Created[A]{}, err
	}
	if err := work.Add(ctx, a); err != nil {
		return Created[A]{}, err
	}
	receipt, err := s.commit(ctx, work, a, in.Sender)
	if fault.Is(err, fault.Conflict) && in.hasKey() {
		return s.createdBefore(ctx, &in, id, hash, work.SessionToken())
	}
	if err != nil {
		return Created[A]{}, err
	}
	return Created[A]{Aggregate: a, ETag: receipt.ETag, SessionToken: receipt.SessionToken}, nil
}

// identify returns the id of the new aggregate and the hash of the request.
func (s *Service[A]) identify(in *Creation[A]) (id uuid.UUID, hash string, err error) {
	switch {
	case in.Make == nil:
		return uuid.Nil, "", errors.New("create: Creation.Make is missing")
	case !in.hasKey() && in.ID != uuid.Nil:
		return in.ID, "", nil
	case !in.hasKey():
		return s.IDs(), "", nil
	}
	if err := in.validate(); err != nil {
		return uuid.Nil, "", err
	}
	switch {
	case in.ID != uuid.Nil:
		return uuid.Nil, "", errors.New("create: ID must be empty with an idempotency key")
	case s.Namespace == uuid.Nil:
		return uuid.Nil, "", errors.New("create with an idempotency key: Service.Namespace is missing")
	}
	hash, err = in.requestHash(in.Parts...)
	return in.derivedID(s.Namespace), hash, err
}

// createdBefore answers a repeat with the aggregate of the first request.
func (s *Service[A]) createdBefore(ctx context.Context, in *Creation[A], id uuid.UUID, hash, session string) (Created[A], error) {
	var found A
	now, err := s.Current(ctx, id, session, func(a A) error {
		found = a
		return nil
	})
	switch {
	case err != nil:
		return Created[A]{}, err
	case found.Snapshot().RequestHash != hash:
		return Created[A]{}, errKeyReused()
	case found.Deleted():
		return Created[A]{}, fault.New(fault.Gone, s.Noun+"_deleted", "the "+s.Noun+" that this request created was deleted")
	}
	unchanged := found.Version() == 1
	if in.Unchanged != nil {
		unchanged = in.Unchanged(found)
	}
	if !unchanged {
		now.ETag = ""
	}
	return Created[A]{Aggregate: found, ETag: now.ETag, SessionToken: now.SessionToken, Replayed: true}, nil
}
