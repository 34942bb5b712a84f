package command

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/fault"
)

// Target is the aggregate of a command, the client's precondition, and the caller.
type Target struct {
	ID uuid.UUID
	// IfMatch requires that the aggregate's ETag is one of these. "*" matches any ETag;
	// empty is no precondition. It is ignored for a deleted aggregate, because the result
	// without it is an error or no change anyway (RFC 9110 13.2.1).
	IfMatch []string
	// SessionToken covers the writes that the client has seen; it may be empty.
	SessionToken string
	Sender
}

// Updated is the answer of every command that changes an aggregate.
type Updated struct {
	// ETag of the aggregate after the request. It is empty if another request has changed
	// the aggregate since, because with the newer ETag the client could overwrite a change
	// that it has not seen. See also Receipt.
	ETag         string
	SessionToken string
	// Version is the current version of the aggregate. It did not rise if nothing changed.
	Version int64
	// Replayed is true if the request was answered before under its idempotency key.
	// Nothing was changed, and the other fields are those of the current aggregate.
	Replayed bool
}

// Update reads the aggregate, calls change and commits. After a lost race it calls change
// again, with the aggregate read again. Parts are the name and the fields of the command.
// They distinguish a repeat from another request under the same key, and are encoded as JSON.
//
// Faults: those of change, NotFound, PreconditionFailed, Invalid (the idempotency key), and
// those of UnitOfWork.Commit.
func (s *Service[A]) Update(ctx context.Context, t Target, change func(a A) error, parts ...any) (Updated, error) {
	if err := t.validate(); err != nil {
		return Updated{}, err
	}
	if t.hasKey() && t.ID == t.derivedID(s.Namespace) { // the key has created this aggregate
		return Updated{}, errKeyReused()
	}
	request, err := s.requestOf(t, parts)
	if err != nil {
		return Updated{}, err
	}
	session := t.SessionToken
	for attempt := 1; ; attempt++ {
		work, err := s.Work.Begin(session)
		if err != nil {
			return Updated{}, err
		}
		updated, raced, err := s.updateOnce(ctx, work, t, request, change)
		// This token covers the winner's write, so that the next read sees it.
		session = work.SessionToken()
		if err == nil {
			return updated, nil
		}
		if replayed, found, replayErr := s.replay(ctx, work, request, err); found || replayErr != nil {
			return replayed, replayErr
		}
		switch {
		case !raced:
			return Updated{}, err
		case t.isConditional() && attempt > 1:
			return Updated{}, err
		case t.isConditional(): // read once more: the aggregate may be deleted, which is not PreconditionFailed
		case !backOff(ctx, attempt):
			return Updated{}, errContended(s.Noun, err)
		}
	}
}

// updateOnce makes one attempt. Request is nil for a command without a key. raced is true if
// the aggregate changed between the read and the commit.
func (s *Service[A]) updateOnce(ctx context.Context, work UnitOfWork[A], t Target, request *Request, change func(a A) error) (updated Updated, raced bool, err error) {
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
	receipt, err := s.commit(ctx, work, a, t.Sender)
	if err != nil {
		return Updated{}, fault.Is(err, fault.PreconditionFailed), err
	}
	return Updated{ETag: receipt.ETag, SessionToken: receipt.SessionToken, Version: a.Version()}, false, nil
}

// requestOf returns the note about the command, or nil without a key.
func (s *Service[A]) requestOf(t Target, parts []any) (*Request, error) {
	if !t.hasKey() {
		return nil, nil //nolint:nilnil // no key, no note
	}
	hash, err := t.requestHash(parts...)
	if err != nil {
		return nil, err
	}
	return &Request{ID: t.requestID(), AggregateID: t.ID, Hash: hash, CommandID: s.IDs(), CreatedAt: s.Now()}, nil
}

// replay checks whether a command failed because it is a repeat: its first execution changed
// the expected state or left a note with the same id.
func (s *Service[A]) replay(ctx context.Context, work UnitOfWork[A], request *Request, failed error) (Updated, bool, error) {
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
	now, err := s.Current(ctx, request.AggregateID, work.SessionToken(), func(A) error { return nil })
	now.Replayed = true
	if now.Version != answered.Version {
		now.ETag = ""
	}
	return now, err == nil, err
}

// Current calls inspect with the current aggregate, deleted or not, and changes nothing. The
// ETag of a deleted aggregate is empty.
func (s *Service[A]) Current(ctx context.Context, id uuid.UUID, session string, inspect func(a A) error) (Updated, error) {
	deleted := false
	now, err := s.Update(ctx, Target{ID: id, SessionToken: session}, func(a A) error {
		deleted = a.Deleted()
		return inspect(a)
	})
	if deleted {
		now.ETag = ""
	}
	return now, err
}

// isConditional reports whether the client listed the ETags that it accepts.
func (t Target) isConditional() bool {
	return len(t.IfMatch) > 0 && !slices.Contains(t.IfMatch, "*")
}
