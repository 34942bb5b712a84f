package command

import (
	"context"

	"feedbox/domain/contact"
)

// UpdateCompany replaces a contact's company as a whole and records
// ContactCompanyUpdatedEvent.
//
// Faults: Invalid, NotFound, PreconditionFailed, and those of UnitOfWork.Commit.
type UpdateCompany struct {
	Target
	Company contact.CompanyFields
}

// Returns declares the answer.
func (UpdateCompany) Returns(Updated) {}

func (p Ports) updateCompany(ctx context.Context, in UpdateCompany) (Updated, error) {
	company, err := contact.NewCompany(in.Company)
	if err != nil {
		return Updated{}, err
	}
	return p.update(ctx, in.Target, func(c *contact.Contact) error {
		return c.UpdateCompany(company, p.IDs(), p.Now())
	}, "UpdateCompany", in.Company)
}
