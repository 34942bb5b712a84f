package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/domain/contact"
)

// DeleteContact marks a contact deleted and records ContactDeletedEvent. A second delete
// succeeds and records nothing, whatever its preconditions are, because the contact is in the
// requested state already (RFC 9110 13.1.1).
//
// Faults: NotFound if the contact never existed, PreconditionFailed, and those of
// UnitOfWork.Commit.
type DeleteContact struct {
	command.Target
}

// Returns declares the answer. Its ETag is empty, because a deleted contact has no
// representation.
func (DeleteContact) Returns(command.Updated) {}

func (c *commands) deleteContact(ctx context.Context, in DeleteContact) (command.Updated, error) {
	updated, err := c.Update(ctx, in.Target, func(a *contact.Contact) error {
		if a.Deleted() {
			return nil
		}
		return a.Delete(c.IDs(), c.Now())
	}, "DeleteContact")
	updated.ETag = ""
	return updated, err
}
