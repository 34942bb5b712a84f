package contacts

import (
	"context"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/infrastructure/httpapi"
)

type nameBody struct{ firstName, lastName string }

func (b *nameBody) Members() []httpapi.Member {
	return []httpapi.Member{text("firstName", &b.firstName), text("lastName", &b.lastName)}
}

func (b *nameBody) Check() error {
	_, err := contact.NewName(b.firstName, b.lastName)
	return err
}

func (r routes) updateName(ctx context.Context, b *nameBody, target command.Target) (command.Updated, error) {
	return mediator.Send(ctx, r.Mediator, contacts.UpdateName{Target: target, FirstName: b.firstName, LastName: b.lastName})
}

// descriptionBody is the body of update-description. The member is required, because an
// empty body is more likely a mistake than a request to erase.
type descriptionBody struct{ description *string }

func (b *descriptionBody) Members() []httpapi.Member {
	return []httpapi.Member{optionalText("description", true, &b.description)}
}

func (b *descriptionBody) Check() error {
	_, err := contact.NewDescription(b.description)
	return err
}

func (r routes) updateDescription(ctx context.Context, b *descriptionBody, target command.Target) (command.Updated, error) {
	return mediator.Send(ctx, r.Mediator, contacts.UpdateDescription{Target: target, Description: b.description})
}

// emailBody is the body of update-email. The member is required, as in descriptionBody.
type emailBody struct{ email *string }

func (b *emailBody) Members() []httpapi.Member {
	return []httpapi.Member{optionalText("email", true, &b.email)}
}

func (b *emailBody) Check() error {
	_, err := contact.NewEmail(b.email)
	return err
}

func (r routes) updateEmail(ctx context.Context, b *emailBody, target command.Target) (command.Updated, error) {
	return mediator.Send(ctx, r.Mediator, contacts.UpdateEmail{Target: target, Email: b.email})
}

// companyBody is the body of update-company, which replaces the whole company: absent
// members become empty.
type companyBody struct{ fields contact.CompanyFields }

func (b *companyBody) Members() []httpapi.Member {
	return []httpapi.Member{
		text("companyName", &b.fields.CompanyName),
		textOrNothing("street", &b.fields.Street),
		textOrNothing("houseNumber", &b.fields.HouseNumber),
		textOrNothing("postalCode", &b.fields.PostalCode),
		textOrNothing("city", &b.fields.City),
		textOrNothing("country", &b.fields.Country),
	}
}

func (b *companyBody) Check() error {
	_, err := contact.NewCompany(b.fields)
	return err
}

func (r routes) updateCompany(ctx context.Context, b *companyBody, target command.Target) (command.Updated, error) {
	return mediator.Send(ctx, r.Mediator, contacts.UpdateCompany{Target: target, Company: b.fields})
}

func (r routes) delete(ctx context.Context, target command.Target) (command.Updated, error) {
	return mediator.Send(ctx, r.Mediator, contacts.DeleteContact{Target: target})
}
