package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/domain/contact"
)

// UpdateEmail changes or removes the e-mail address of a contact and records
// ContactEmailUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateEmail struct {
	command.Target
	Email *string // nil: none; empty: Invalid
}

// Returns declares the answer.
func (UpdateEmail) Returns(command.Updated) {}

func (c *commands) updateEmail(ctx context.Context, in UpdateEmail) (command.Updated, error) {
	email, err := contact.NewEmail(in.Email)
	if err != nil {
		return command.Updated{}, err
	}
	return c.Update(ctx, in.Target, func(a *contact.Contact) error {
		return a.UpdateEmail(email, c.IDs(), c.Now())
	}, "UpdateEmail", in.Email)
}
