package command

import (
	"context"

	"feedbox/domain/contact"
)

// UpdateEmail gives a contact another e-mail address, or none, and records
// ContactEmailUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateEmail struct {
	Target
	Email *string // nil: none; empty: Invalid
}

// Returns declares the answer.
func (UpdateEmail) Returns(Updated) {}

func (p Ports) updateEmail(ctx context.Context, in UpdateEmail) (Updated, error) {
	email, err := contact.NewEmail(in.Email)
	if err != nil {
		return Updated{}, err
	}
	return p.update(ctx, in.Target, func(c *contact.Contact) error {
		return c.UpdateEmail(email, p.IDs(), p.Now())
	}, "UpdateEmail", in.Email)
}
