package command

import (
	"context"

	"feedbox/domain/contact"
)

// UpdateName gives a contact another name and records ContactNameUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateName struct {
	Target
	FirstName string
	LastName  string
}

// Returns declares the answer.
func (UpdateName) Returns(Updated) {}

func (p Ports) updateName(ctx context.Context, in UpdateName) (Updated, error) {
	name, err := contact.NewName(in.FirstName, in.LastName)
	if err != nil {
		return Updated{}, err
	}
	return p.update(ctx, in.Target, func(c *contact.Contact) error {
		return c.UpdateName(name, p.IDs(), p.Now())
	}, "UpdateName", in.FirstName, in.LastName)
}
