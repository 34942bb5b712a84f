package contacts

import (
	"context"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi"
)

type createBody struct {
	firstName, lastName string
	email, description  *string
	companyName         string
}

func (b *createBody) Members() []httpapi.Member {
	return []httpapi.Member{
		text("firstName", &b.firstName),
		text("lastName", &b.lastName),
		optionalText("email", false, &b.email),
		optionalText("description", false, &b.description),
		text("companyName", &b.companyName),
	}
}

func (b *createBody) Check() error {
	_, name := contact.NewName(b.firstName, b.lastName)
	_, email := contact.NewEmail(b.email)
	_, description := contact.NewDescription(b.description)
	_, company := contact.NewCompany(contact.CompanyFields{CompanyName: b.companyName})
	return fault.Merge(name, email, description, company)
}

func (r routes) create(ctx context.Context, b *createBody, in httpapi.Creation) (httpapi.Created[contactView], error) {
	created, err := mediator.Send(ctx, r.Mediator, contacts.CreateContact{
		FirstName:    b.firstName,
		LastName:     b.lastName,
		Email:        b.email,
		Description:  b.description,
		Company:      contact.CompanyFields{CompanyName: b.companyName},
		IfMatch:      in.IfMatch,
		Sender:       in.Sender,
		SessionToken: in.SessionToken,
	})
	if err != nil {
		return httpapi.Created[contactView]{}, err
	}
	return httpapi.Created[contactView]{
		ID: created.Contact.ID, View: viewOf(created.Contact),
		ETag: created.ETag, SessionToken: created.SessionToken, Replayed: created.Replayed,
	}, nil
}
