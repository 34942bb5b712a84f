package command

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
)

// Creation says how an aggregate is made. Make is required.
type Creation[A aggregate.Aggregate] struct {
	// ID is the new aggregate's id; uuid.Nil lets the service make one. It goes without
	// an idempotency key only, and must never have been used.
	ID uuid.UUID
	// IfMatch demands a state of the aggregate. It has none yet, so any demand fails.
	IfMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
	Sender
	// Make returns the aggregate, which records its first event. RequestHash goes to
	// aggregate.New; it is empty without a key.
	Make func(id uuid.UUID, requestHash string) (A, error)
	// Unchanged reports whether an aggregate is as its creation has left it. Nil takes
	// none that has another version than 1 for so.
	Unchanged func(a A) bool
	// Parts are the command's name and fields, by which a repeat under the same key is
	// told from another request. They are encoded as JSON.
	Parts []any
}

// Created answers Create.
type Created[A aggregate.Aggregate] struct {
	Aggregate A
	// ETag is empty where the aggregate was changed since the request created it, see
	// Updated.
	ETag         string
	SessionToken string
	// Replayed says that an earlier request under the same key has created it.
	Replayed bool
}

// Create makes a new aggregate.
//
// Under an idempotency key the aggregate's id is derived from principal and key, so
// a repeat finds what the first request has made, for as long as the aggregate
// exists: it is answered with the aggregate as it is now, Replayed. If it
// was deleted meanwhile the repeat is Gone; if it is another request under the
// same key it is Invalid (CodeKeyReused). Once the deleted one is erased, the
// request makes a new one, which continues its version and sequence.
//
// Faults: those of Make, Invalid (the key), Conflict when ID is taken, Gone (code
// Noun_deleted), PreconditionFailed, and those of UnitOfWork.Commit.
func (p *Ports[A]) Create(ctx context.Context, in Creation[A]) (Created[A], error) {
	id, hash, err := p.identify(&in)
	if err != nil {
		return Created[A]{}, err
	}
	work, err := p.Work.Begin(in.SessionToken)
	if err != nil {
		return Created[A]{}, err
	}
	if len(in.IfMatch) > 0 {
		return Created[A]{}, fault.New(fault.PreconditionFailed, "", "there is no "+p.Noun+" yet whose state could match")
	}
	a, err := in.Make(id, hash)
	if err != nil {
		return Created[A]{}, err
	}
	if err := work.Add(ctx, a); err != nil {
		return Created[A]{}, err
	}
	receipt, err := p.commit(ctx, work, a, in.Sender)
	if fault.Is(err, fault.Conflict) && in.hasKey() {
		return p.createdBefore(ctx, &in, id, hash, work.SessionToken())
	}
	if err != nil {
		return Created[A]{}, err
	}
	return Created[A]{Aggregate: a, ETag: receipt.ETag, SessionToken: receipt.SessionToken}, nil
}

// identify returns the new aggregate's id and the hash of the request.
func (p *Ports[A]) identify(in *Creation[A]) (id uuid.UUID, hash string, err error) {
	switch {
	case in.Make == nil:
		return uuid.Nil, "", errors.New("create: Make is missing")
	case !in.hasKey() && in.ID != uuid.Nil:
		return in.ID, "", nil
	case !in.hasKey():
		return p.IDs(), "", nil
	}
	if err := in.validate(); err != nil {
		return uuid.Nil, "", err
	}
	switch {
	case in.ID != uuid.Nil:
		return uuid.Nil, "", errors.New("create: an id and an idempotency key exclude each other")
	case p.Namespace == uuid.Nil:
		return uuid.Nil, "", errors.New("create under an idempotency key: Ports.Namespace is missing")
	}
	hash, err = in.requestHash(in.Parts...)
	return in.derivedID(p.Namespace), hash, err
}

// createdBefore answers a repeat with the aggregate that the first request made.
func (p *Ports[A]) createdBefore(ctx context.Context, in *Creation[A], id uuid.UUID, hash, session string) (Created[A], error) {
	var found A
	now, err := p.Current(ctx, id, session, func(a A) error {
		found = a
		return nil
	})
	switch {
	case err != nil:
		return Created[A]{}, err
	case found.Snapshot().RequestHash != hash:
		return Created[A]{}, errKeyReused()
	case found.Deleted():
		return Created[A]{}, fault.New(fault.Gone, p.Noun+"_deleted", "the "+p.Noun+" that this request had created is deleted")
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
