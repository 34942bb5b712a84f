package command

import (
	"context"

	"feedbox/domain/contact"
)

// UpdateDescription gives a contact another description, or none, and records
// ContactDescriptionUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateDescription struct {
	Target
	Description *string // nil or empty: none
}

// Returns declares the answer.
func (UpdateDescription) Returns(Updated) {}

func (p Ports) updateDescription(ctx context.Context, in UpdateDescription) (Updated, error) {
	description, err := contact.NewDescription(in.Description)
	if err != nil {
		return Updated{}, err
	}
	return p.update(ctx, in.Target, func(c *contact.Contact) error {
		return c.UpdateDescription(description, p.IDs(), p.Now())
	}, "UpdateDescription", in.Description)
}
