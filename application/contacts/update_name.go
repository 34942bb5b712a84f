package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/domain/contact"
)

// UpdateName changes the name of a contact and records ContactNameUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateName struct {
	command.Target
	FirstName string
	LastName  string
}

// Returns declares the answer.
func (UpdateName) Returns(command.Updated) {}

func (c *commands) updateName(ctx context.Context, in UpdateName) (command.Updated, error) {
	name, err := contact.NewName(in.FirstName, in.LastName)
	if err != nil {
		return command.Updated{}, err
	}
	return c.Update(ctx, in.Target, func(a *contact.Contact) error {
		return a.UpdateName(name, c.IDs(), c.Now())
	}, "UpdateName", in.FirstName, in.LastName)
}
