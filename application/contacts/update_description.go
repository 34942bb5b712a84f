package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/domain/contact"
)

// UpdateDescription changes or removes the description of a contact and records
// ContactDescriptionUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateDescription struct {
	command.Target
	Description *string // nil or empty: none
}

// Returns declares the answer.
func (UpdateDescription) Returns(command.Updated) {}

func (c *commands) updateDescription(ctx context.Context, in UpdateDescription) (command.Updated, error) {
	description, err := contact.NewDescription(in.Description)
	if err != nil {
		return command.Updated{}, err
	}
	return c.Update(ctx, in.Target, func(a *contact.Contact) error {
		return a.UpdateDescription(description, c.IDs(), c.Now())
	}, "UpdateDescription", in.Description)
}
