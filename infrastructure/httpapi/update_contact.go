package httpapi

import (
	"context"
	"net/http"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
)

// update decodes b, reads preconditions and lets send make the change. It
// answers 204 with the new ETag.
func (s *Server) update(w http.ResponseWriter, r *http.Request, b shape, send func(context.Context, command.Target) (command.Updated, error)) error {
	id, err := contactID(r)
	if err != nil {
		return err
	}
	if err := s.decode(w, r, b); err != nil {
		return err
	}
	target, err := s.target(r, id)
	if err != nil {
		return err
	}
	updated, err := send(r.Context(), target)
	if err != nil {
		return err
	}
	setState(w.Header(), updated.ETag, updated.SessionToken)
	setReplayed(w.Header(), updated.Replayed)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// nameBody is the body of update-name.
type nameBody struct{ firstName, lastName string }

func (b *nameBody) members() []member {
	return []member{text("firstName", &b.firstName), text("lastName", &b.lastName)}
}

func (b *nameBody) check() error {
	_, err := contact.NewName(b.firstName, b.lastName)
	return err
}

func (s *Server) updateName(w http.ResponseWriter, r *http.Request) error {
	var b nameBody
	return s.update(w, r, &b, func(ctx context.Context, target command.Target) (command.Updated, error) {
		return mediator.Send(ctx, s.mediator, contacts.UpdateName{Target: target, FirstName: b.firstName, LastName: b.lastName})
	})
}

// descriptionBody is the body of update-description. The member must be
// there: an empty body is more likely a mistake than the wish to erase.
type descriptionBody struct{ description *string }

func (b *descriptionBody) members() []member {
	return []member{optionalText("description", true, &b.description)}
}

func (b *descriptionBody) check() error {
	_, err := contact.NewDescription(b.description)
	return err
}

func (s *Server) updateDescription(w http.ResponseWriter, r *http.Request) error {
	var b descriptionBody
	return s.update(w, r, &b, func(ctx context.Context, target command.Target) (command.Updated, error) {
		return mediator.Send(ctx, s.mediator, contacts.UpdateDescription{Target: target, Description: b.description})
	})
}

// emailBody is the body of update-email. The member must be there, as for the
// description.
type emailBody struct{ email *string }

func (b *emailBody) members() []member {
	return []member{optionalText("email", true, &b.email)}
}

func (b *emailBody) check() error {
	_, err := contact.NewEmail(b.email)
	return err
}

func (s *Server) updateEmail(w http.ResponseWriter, r *http.Request) error {
	var b emailBody
	return s.update(w, r, &b, func(ctx context.Context, target command.Target) (command.Updated, error) {
		return mediator.Send(ctx, s.mediator, contacts.UpdateEmail{Target: target, Email: b.email})
	})
}

// companyBody is the body of update-company, which replaces the company as a
// whole: what is absent is empty afterwards.
type companyBody struct{ fields contact.CompanyFields }

func (b *companyBody) members() []member {
	return []member{
		text("companyName", &b.fields.CompanyName),
		textOrNothing("street", &b.fields.Street),
		textOrNothing("houseNumber", &b.fields.HouseNumber),
		textOrNothing("postalCode", &b.fields.PostalCode),
		textOrNothing("city", &b.fields.City),
		textOrNothing("country", &b.fields.Country),
	}
}

func (b *companyBody) check() error {
	_, err := contact.NewCompany(b.fields)
	return err
}

func (s *Server) updateCompany(w http.ResponseWriter, r *http.Request) error {
	var b companyBody
	return s.update(w, r, &b, func(ctx context.Context, target command.Target) (command.Updated, error) {
		return mediator.Send(ctx, s.mediator, contacts.UpdateCompany{Target: target, Company: b.fields})
	})
}
