package command

import (
	"context"

	"feedbox/domain/contact"
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
	updated.ETag = ""
	return updated, err
}
