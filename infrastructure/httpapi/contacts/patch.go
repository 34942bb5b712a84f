package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi"
)

// patchBody is a merge patch (RFC 7396) of a contact's representation.
type patchBody struct{ contacts.PatchContact }

// member adapts contacts.Member to httpapi.Setter.
type member contacts.Member

func (m *member) Set(text *string) { *m = member{Present: true, Text: text} }

func (b *patchBody) Members() []httpapi.Member {
	return []httpapi.Member{
		part("description", &b.Description),
		part("email", &b.Email),
		httpapi.Object("name", part("firstName", &b.FirstName), part("lastName", &b.LastName)),
		httpapi.Object(
			"company",
			part("companyName", &b.CompanyName),
			part("street", &b.Street),
			part("houseNumber", &b.HouseNumber),
			part("postalCode", &b.PostalCode),
			part("city", &b.City),
			part("country", &b.Country),
		),
	}
}

// Check applies the domain's rules, so that breaches are reported together with faults of
// structure. Absent members pass.
func (b *patchBody) Check() error {
	const valid = "x"
	or := func(m contacts.Member, absent string) string {
		switch {
		case !m.Present:
			return absent
		case m.Text == nil:
			return ""
		default:
			return *m.Text
		}
	}
	_, name := contact.NewName(or(b.FirstName, valid), or(b.LastName, valid))
	_, email := contact.NewEmail(b.Email.Text)
	_, description := contact.NewDescription(b.Description.Text)
	_, company := contact.NewCompany(contact.CompanyFields{
		CompanyName: or(b.CompanyName, valid),
		Street:      or(b.Street, ""),
		HouseNumber: or(b.HouseNumber, ""),
		PostalCode:  or(b.PostalCode, ""),
		City:        or(b.City, ""),
		Country:     or(b.Country, ""),
	})
	return fault.Merge(fault.At("/name", name), description, email, fault.At("/company", company))
}

func (r routes) patch(ctx context.Context, b *patchBody, target command.Target) (httpapi.Patched[contactView], error) {
	b.Target = target
	patched, err := mediator.Send(ctx, r.Mediator, b.PatchContact)
	if err != nil {
		return httpapi.Patched[contactView]{}, err
	}
	return httpapi.Patched[contactView]{Updated: patched.Updated, View: viewOf(patched.Contact)}, nil
}
