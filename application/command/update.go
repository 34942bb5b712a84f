package command

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// Target says which contact a command is about and what the client knows of it.
type Target struct {
	ContactID uuid.UUID
	// IfMatch demands that the contact's ETag is one of these. "*" is any ETag;
	// empty is no precondition.
	IfMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// Updated answers every command that changes a contact.
type Updated struct {
	// ETag of the contact now. It may be empty, see Receipt.
	ETag         string
	SessionToken string
	// Version of the contact now. It did not rise if nothing was changed.
	Version int64
}

// updateAttempts bounds how often a command without a precondition is run when
// it loses the race against other writers.
const updateAttempts = 5

// update reads the contact, lets change call its verbs, and commits. Change may
// be called again, with the contact read anew.
func (p Ports) update(ctx context.Context, t Target, change func(c *contact.Contact) error) (Updated, error) {
	session := t.SessionToken
	for attempt := 1; ; attempt++ {
		work, err := p.Work.Begin(session)
		if err != nil {
			return Updated{}, err
		}
		updated, err := updateOnce(ctx, work, t, change)
		if err == nil || attempt == updateAttempts || t.isConditional() || !fault.Is(err, fault.PreconditionFailed) {
			return updated, err
		}
		// The winner's write is behind this token: the next read sees it.
		session = work.SessionToken()
	}
}

func updateOnce(ctx context.Context, work UnitOfWork, t Target, change func(c *contact.Contact) error) (Updated, error) {
	c, err := work.Contacts().Read(ctx, t.ContactID, t.IfMatch)
	if err != nil {
		return Updated{}, err
	}
	if err := change(c); err != nil {
		return Updated{}, err
	}
	receipt, err := work.Commit(ctx)
	if err != nil {
		return Updated{}, err
	}
	return Updated{ETag: receipt.ETag, SessionToken: receipt.SessionToken, Version: c.Version()}, nil
}

// isConditional reports whether the client named the states it accepts.
func (t Target) isConditional() bool {
	return len(t.IfMatch) > 0 && !slices.Contains(t.IfMatch, "*")
}
