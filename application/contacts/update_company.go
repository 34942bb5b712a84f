package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/domain/contact"
)

// UpdateCompany replaces a contact's company as a whole and records
// ContactCompanyUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateCompany struct {
	command.Target
	Company contact.CompanyFields
}

// Returns declares the answer.
func (UpdateCompany) Returns(command.Updated) {}

func (c *commands) updateCompany(ctx context.Context, in UpdateCompany) (command.Updated, error) {
	company, err := contact.NewCompany(in.Company)
	if err != nil {
		return command.Updated{}, err
	}
	return c.Update(ctx, in.Target, func(a *contact.Contact) error {
		return a.UpdateCompany(company, c.IDs(), c.Now())
	}, "UpdateCompany", in.Company)
}
