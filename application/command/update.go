package command

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// Target says which contact a command is about, what the client knows of it, and
// who asks.
type Target struct {
	ContactID uuid.UUID
	// IfMatch demands that the contact's ETag is one of these. "*" is any ETag;
	// empty is no precondition. A deleted contact has none to compare: the command
	// then ends as it would without a precondition (RFC 9110 13.2.1).
	IfMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
	Sender
}

// Updated answers every command that changes a contact.
type Updated struct {
	// ETag of the contact as the request has left it. It is empty where another has
	// changed it since: with the ETag of a state it has not seen, the client's next
	// change would overwrite what it does not know of. See also Receipt.
	ETag         string
	SessionToken string
	// Version of the contact now. It did not rise if nothing was changed.
	Version int64
	// Replayed says that the request was answered before, under its idempotency key:
	// nothing was done, and the rest tells of the contact as it is now.
	Replayed bool
}

// changeFunc calls the verbs of a contact. It may be called again, with the
// contact read anew.
type changeFunc func(c *contact.Contact) error

// update reads the contact, changes it and commits. Parts are the command's name
// and fields, by which a repeat under the same key is told from another request.
func (p Ports) update(ctx context.Context, t Target, change changeFunc, parts ...any) (Updated, error) {
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
		case t.isConditional(): // the read tells what the winner has left: another state, or a deleted contact
		case !standBack(ctx, attempt):
			return Updated{}, errContended(err)
		}
	}
}

// updateOnce makes one attempt. Request is nil for a command without a key. It raced
// if another changed the contact between the read and the commit.
func (p Ports) updateOnce(ctx context.Context, work UnitOfWork, t Target, request *Request, change changeFunc) (updated Updated, raced bool, err error) {
	c, err := work.Contacts().Read(ctx, t.ContactID, t.IfMatch)
	if err != nil {
		return Updated{}, false, err
	}
	if err := change(c); err != nil {
		return Updated{}, false, err
	}
	if request != nil {
		note := *request
		note.Version = c.Version()
		if commit, changed := c.Pending(); changed {
			note.Version = commit.State.Version
		}
		if err := work.NoteRequest(note); err != nil {
			return Updated{}, false, err
		}
	}
	receipt, err := p.commit(ctx, work, c, t.Sender)
	if err != nil {
		return Updated{}, fault.Is(err, fault.PreconditionFailed), err
	}
	return Updated{ETag: receipt.ETag, SessionToken: receipt.SessionToken, Version: c.Version()}, false, nil
}

// requestOf returns the note about the command, or nil if it has no key.
func (p Ports) requestOf(t Target, parts []any) (*Request, error) {
	if !t.hasKey() {
		return nil, nil //nolint:nilnil // no key, no note
	}
	hash, err := t.requestHash(parts...)
	if err != nil {
		return nil, err
	}
	return &Request{ID: t.requestID(), ContactID: t.ContactID, Hash: hash, CommandID: p.IDs(), CreatedAt: p.Now()}, nil
}

// replay looks whether a command failed because it was done before: its first
// run has changed the state that the repeat asks for, or has left its note.
func (p Ports) replay(ctx context.Context, work UnitOfWork, request *Request, failed error) (Updated, bool, error) {
	switch fault.KindOf(failed) {
	case fault.PreconditionFailed, fault.NotFound, fault.Conflict:
	default:
		return Updated{}, false, nil
	}
	if request == nil {
		return Updated{}, false, nil
	}
	answered, err := work.FindRequest(ctx, request.ContactID, request.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return Updated{}, false, nil
	case err != nil:
		return Updated{}, false, err
	case answered.Hash != request.Hash:
		return Updated{}, false, errKeyReused()
	}
	now, err := p.current(ctx, request.ContactID, work.SessionToken(), func(*contact.Contact) error { return nil })
	now.Replayed = true
	if now.Version != answered.Version {
		now.ETag = ""
	}
	return now, err == nil, err
}

// current returns the contact as it is, deleted or not, after look has seen it.
func (p Ports) current(ctx context.Context, id uuid.UUID, session string, look changeFunc) (Updated, error) {
	deleted := false
	now, err := p.update(ctx, Target{ContactID: id, SessionToken: session}, func(c *contact.Contact) error {
		deleted = c.Deleted()
		return look(c)
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
