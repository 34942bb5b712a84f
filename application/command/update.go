package command

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/fault"
)

// Target says which aggregate a command is about, what the client knows of it, and
// who asks.
type Target struct {
	ID uuid.UUID
	// IfMatch demands that the aggregate's ETag is one of these. "*" is any ETag;
	// empty is no precondition. A deleted aggregate has none to compare: the command
	// then ends as it would without a precondition (RFC 9110 13.2.1).
	IfMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
	Sender
}

// Updated answers every command that changes an aggregate.
type Updated struct {
	// ETag of the aggregate as the request has left it. It is empty where another has
	// changed it since: with the ETag of a state it has not seen, the client's next
	// change would overwrite what it does not know of. See also Receipt.
	ETag         string
	SessionToken string
	// Version of the aggregate now. It did not rise if nothing was changed.
	Version int64
	// Replayed says that the request was answered before, under its idempotency key:
	// nothing was done, and the rest tells of the aggregate as it is now.
	Replayed bool
}

// Update reads the aggregate, changes it and commits. Change calls the verbs; it may be
// called again, with the aggregate read anew. Parts are the command's name and fields, by
// which a repeat under the same key is told from another request; they are encoded as JSON.
//
// Faults: those of change, NotFound, PreconditionFailed, Invalid (the idempotency key), and
// those of UnitOfWork.Commit.
func (p *Ports[A]) Update(ctx context.Context, t Target, change func(a A) error, parts ...any) (Updated, error) {
	if err := t.validate(); err != nil {
		return Updated{}, err
	}
	request, err := p.requestOf(t, parts)
	if err != nil {
		return Updated{}, err
	}
	session := t.SessionToken
	for attempt := 1; ; attempt++ {
		work, err := p.Work.Begin(session)
		if err != nil {
			return Updated{}, err
		}
		updated, raced, err := p.updateOnce(ctx, work, t, request, change)
		// The winner's write is behind this token: the next read sees it.
		session = work.SessionToken()
		if err == nil {
			return updated, nil
		}
		if replayed, found, replayErr := p.replay(ctx, work, request, err); found || replayErr != nil {
			return replayed, replayErr
		}
		switch {
		case !raced:
			return Updated{}, err
		case t.isConditional() && attempt > 1:
			return Updated{}, err
		case t.isConditional(): // the read tells what the winner has left: another state, or a deleted aggregate
		case !standBack(ctx, attempt):
			return Updated{}, errContended(p.Noun, err)
		}
	}
}

// updateOnce makes one attempt. Request is nil for a command without a key. It raced
// if another changed the aggregate between the read and the commit.
func (p *Ports[A]) updateOnce(ctx context.Context, work UnitOfWork[A], t Target, request *Request, change func(a A) error) (updated Updated, raced bool, err error) {
	a, err := work.Read(ctx, t.ID, t.IfMatch)
	if err != nil {
		return Updated{}, false, err
	}
	if err := change(a); err != nil {
		return Updated{}, false, err
	}
	if request != nil {
		note := *request
		note.Version = a.Version()
		if commit, changed := a.Pending(); changed {
			note.Version = commit.Version
		}
		if err := work.NoteRequest(note); err != nil {
			return Updated{}, false, err
		}
	}
	receipt, err := p.commit(ctx, work, a, t.Sender)
	if err != nil {
		return Updated{}, fault.Is(err, fault.PreconditionFailed), err
	}
	return Updated{ETag: receipt.ETag, SessionToken: receipt.SessionToken, Version: a.Version()}, false, nil
}

// requestOf returns the note about the command, or nil if it has no key.
func (p *Ports[A]) requestOf(t Target, parts []any) (*Request, error) {
	if !t.hasKey() {
		return nil, nil //nolint:nilnil // no key, no note
	}
	hash, err := t.requestHash(parts...)
	if err != nil {
		return nil, err
	}
	return &Request{ID: t.requestID(), AggregateID: t.ID, Hash: hash, CommandID: p.IDs(), CreatedAt: p.Now()}, nil
}

// replay looks whether a command failed because it was done before: its first
// run has changed the state that the repeat asks for, or has left its note.
func (p *Ports[A]) replay(ctx context.Context, work UnitOfWork[A], request *Request, failed error) (Updated, bool, error) {
	switch fault.KindOf(failed) {
	case fault.PreconditionFailed, fault.NotFound, fault.Conflict:
	default:
		return Updated{}, false, nil
	}
	if request == nil {
		return Updated{}, false, nil
	}
	answered, err := work.FindRequest(ctx, request.AggregateID, request.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return Updated{}, false, nil
	case err != nil:
		return Updated{}, false, err
	case answered.Hash != request.Hash:
		return Updated{}, false, errKeyReused()
	}
	now, err := p.Current(ctx, request.AggregateID, work.SessionToken(), func(A) error { return nil })
	now.Replayed = true
	if now.Version != answered.Version {
		now.ETag = ""
	}
	return now, err == nil, err
}

// Current returns the aggregate as it is, deleted or not, after look has seen it, and
// changes nothing. The ETag of a deleted one is empty.
func (p *Ports[A]) Current(ctx context.Context, id uuid.UUID, session string, look func(a A) error) (Updated, error) {
	deleted := false
	now, err := p.Update(ctx, Target{ID: id, SessionToken: session}, func(a A) error {
		deleted = a.Deleted()
		return look(a)
	})
	if deleted {
		now.ETag = ""
	}
	return now, err
}

// isConditional reports whether the client named the states it accepts.
func (t Target) isConditional() bool {
	return len(t.IfMatch) > 0 && !slices.Contains(t.IfMatch, "*")
}
