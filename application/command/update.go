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
	// empty is no precondition.
	IfMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
	Sender
}

// Updated answers every command that changes a contact.
type Updated struct {
	// ETag of the contact now. It may be empty, see Receipt.
	ETag         string
	SessionToken string
	// Version of the contact now. It did not rise if nothing was changed.
	Version int64
	// Replayed says that the request was answered before, under its idempotency key:
	// nothing was done, and the rest tells of the contact as it is now.
	Replayed bool
}

// updateAttempts bounds how often a command without a precondition is run when
// it loses the race against other writers.
const updateAttempts = 5

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
		updated, err := p.updateOnce(ctx, work, t, request, change)
		// The winner's write is behind this token: the next read sees it.
		session = work.SessionToken()
		if err == nil {
			return updated, nil
		}
		if replayed, found, replayErr := p.replay(ctx, work, request, err); found || replayErr != nil {
			return replayed, replayErr
		}
		if attempt == updateAttempts || t.isConditional() || !fault.Is(err, fault.PreconditionFailed) {
			return Updated{}, err
		}
	}
}

// updateOnce makes one attempt. Request is nil for a command without a key.
func (p Ports) updateOnce(ctx context.Context, work UnitOfWork, t Target, request *Request, change changeFunc) (Updated, error) {
	c, err := work.Contacts().Read(ctx, t.ContactID, t.IfMatch)
	if err != nil {
		return Updated{}, err
	}
	if err := change(c); err != nil {
		return Updated{}, err
	}
	if request != nil {
		journal, err := journalOf(work)
		if err != nil {
			return Updated{}, err
		}
		if err := journal.NoteRequest(*request); err != nil {
			return Updated{}, err
		}
	}
	receipt, err := p.commit(ctx, work, c, t.Sender)
	if err != nil {
		return Updated{}, err
	}
	return Updated{ETag: receipt.ETag, SessionToken: receipt.SessionToken, Version: c.Version()}, nil
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
	journal, err := journalOf(work)
	if err != nil {
		return Updated{}, false, err
	}
	answered, err := journal.FindRequest(ctx, request.ContactID, request.ID)
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
