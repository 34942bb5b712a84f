package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// PatchContact changes several parts of a contact in one commit, as a JSON merge patch does
// (RFC 7396): an absent member stays, null removes. Each kind of change records its event; a
// patch without a change records none.
//
// Pointers of faults are those of the contact's representation: /name/firstName,
// /description, /email, /company/street and so on. Removing a required part is a fault.
//
// Faults: Invalid (lists all fields), NotFound, PreconditionFailed, and those of
// UnitOfWork.Commit.
type PatchContact struct {
	command.Target
	FirstName   Member
	LastName    Member
	Description Member
	Email       Member
	CompanyName Member
	Street      Member
	HouseNumber Member
	PostalCode  Member
	City        Member
	Country     Member
}

// Member is a text member of a merge patch. The zero value is absent.
type Member struct {
	// Present is true if the patch has the member.
	Present bool
	// Text is its value; nil is null.
	Text *string
}

// ContactPatched is the answer of PatchContact.
type ContactPatched struct {
	command.Updated
	Contact Contact
}

// Returns declares the answer.
func (PatchContact) Returns(ContactPatched) {}

func (c *commands) patchContact(ctx context.Context, in PatchContact) (ContactPatched, error) {
	var patched *contact.Contact
	inspect := func(a *contact.Contact) error {
		patched = a
		if a.Deleted() {
			return a.NotFound()
		}
		return nil
	}
	updated, err := c.Update(ctx, in.Target, func(a *contact.Contact) error {
		if err := inspect(a); err != nil {
			return err
		}
		return c.applyPatch(in, a)
	}, in.parts()...)
	if err == nil && updated.Replayed {
		replayed := updated
		updated, err = c.Current(ctx, in.ID, replayed.SessionToken, inspect)
		updated.Replayed = true
		if updated.ETag != replayed.ETag {
			updated.ETag = "" // changed since by another request, see Updated
		}
	}
	if err != nil {
		return ContactPatched{}, err
	}
	return ContactPatched{Updated: updated, Contact: NewContact(patched.State())}, nil
}

func (in PatchContact) parts() []any {
	return []any{
		"PatchContact", in.FirstName, in.LastName, in.Description, in.Email,
		in.CompanyName, in.Street, in.HouseNumber, in.PostalCode, in.City, in.Country,
	}
}

// applyPatch validates all parts that the patch touches, then calls the verbs. A verb without
// a change does nothing.
func (c *commands) applyPatch(in PatchContact, a *contact.Contact) error {
	var (
		s      = a.State()
		now    = c.Now()
		verbs  []func() error
		faults []error
	)
	if in.FirstName.Present || in.LastName.Present {
		name, err := contact.NewName(in.FirstName.over(s.FirstName), in.LastName.over(s.LastName))
		faults = append(faults, fault.At("/name", err))
		verbs = append(verbs, func() error { return a.UpdateName(name, c.IDs(), now) })
	}
	if in.Description.Present {
		description, err := contact.NewDescription(in.Description.Text)
		faults = append(faults, err)
		verbs = append(verbs, func() error { return a.UpdateDescription(description, c.IDs(), now) })
	}
	if in.Email.Present {
		email, err := contact.NewEmail(in.Email.Text)
		faults = append(faults, err)
		verbs = append(verbs, func() error { return a.UpdateEmail(email, c.IDs(), now) })
	}
	if in.touchesCompany() {
		company, err := contact.NewCompany(in.companyOver(s.Company))
		faults = append(faults, fault.At("/company", err))
		verbs = append(verbs, func() error { return a.UpdateCompany(company, c.IDs(), now) })
	}
	if err := fault.Merge(faults...); err != nil {
		return err
	}
	for _, verb := range verbs {
		if err := verb(); err != nil {
			return err
		}
	}
	return nil
}

func (in PatchContact) touchesCompany() bool {
	return in.CompanyName.Present || in.Street.Present || in.HouseNumber.Present ||
		in.PostalCode.Present || in.City.Present || in.Country.Present
}

func (in PatchContact) companyOver(present contact.CompanyFields) contact.CompanyFields {
	return contact.CompanyFields{
		CompanyName: in.CompanyName.over(present.CompanyName),
		Street:      in.Street.over(present.Street),
		HouseNumber: in.HouseNumber.over(present.HouseNumber),
		PostalCode:  in.PostalCode.over(present.PostalCode),
		City:        in.City.over(present.City),
		Country:     in.Country.over(present.Country),
	}
}

// over returns the member's text, empty for null, or the present text if the patch does not
// have the member.
func (m Member) over(present string) string {
	switch {
	case !m.Present:
		return present
	case m.Text == nil:
		return ""
	default:
		return *m.Text
	}
}
