package command

import (
	"context"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// DeleteContact marks a contact deleted and records ContactDeletedEvent. Deleting
// it again succeeds and records nothing, whatever the preconditions are: what
// the client wants is so already (RFC 9110 13.1.1).
//
// Faults: NotFound if there never was such a contact, PreconditionFailed, and
// those of UnitOfWork.Commit.
type DeleteContact struct {
	Target
}

// Returns declares the answer. Its ETag is empty: a deleted contact has no
// representation to compare with.
func (DeleteContact) Returns(Updated) {}

func (p Ports) deleteContact(ctx context.Context, in DeleteContact) (Updated, error) {
	updated, err := p.update(ctx, in.Target, func(c *contact.Contact) error {
		if c.Deleted() {
			return nil
		}
		return c.Delete(p.IDs(), p.Now())
	}, "DeleteContact")
	if fault.Is(err, fault.PreconditionFailed) && in.isConditional() {
		return p.deletedAlready(ctx, in, err)
	}
	updated.ETag = ""
	return updated, err
}

// deletedAlready turns a failed precondition into success if the contact is
// deleted, and returns the failure otherwise.
func (p Ports) deletedAlready(ctx context.Context, in DeleteContact, failed error) (Updated, error) {
	deleted := false
	now, err := p.current(ctx, in.ContactID, in.SessionToken, func(c *contact.Contact) error {
		deleted = c.Deleted()
		return nil
	})
	if err != nil || !deleted {
		return Updated{}, failed
	}
	return now, nil
}
