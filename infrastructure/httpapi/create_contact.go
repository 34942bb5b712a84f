package httpapi

import (
	"net/http"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// createBody is the body of POST /api/contacts.
type createBody struct {
	firstName, lastName string
	email, description  *string
	companyName         string
}

func (b *createBody) members() []member {
	return []member{
		text("firstName", &b.firstName),
		text("lastName", &b.lastName),
		optionalText("email", false, &b.email),
		optionalText("description", false, &b.description),
		text("companyName", &b.companyName),
	}
}

func (b *createBody) check() error {
	_, name := contact.NewName(b.firstName, b.lastName)
	_, email := contact.NewEmail(b.email)
	_, description := contact.NewDescription(b.description)
	_, company := contact.NewCompany(contact.CompanyFields{CompanyName: b.companyName})
	return fault.Merge(name, email, description, company)
}

// createContact answers 201 with Location, ETag and the contact, and 200 with
// the contact as it is now where the request is a repeat under its key.
func (s *Server) createContact(w http.ResponseWriter, r *http.Request) error {
	p, err := preconditionsOf(http.Header{"If-Match": r.Header["If-Match"], "If-None-Match": r.Header["If-None-Match"]}, nil)
	if err != nil {
		return err
	}
	session, err := single(r.Header, headerSession)
	if err != nil {
		return err
	}
	sender, err := senderOf(r)
	if err != nil {
		return err
	}
	var b createBody
	if err := s.decode(w, r, &b); err != nil {
		return err
	}
	created, err := mediator.Send(r.Context(), s.mediator, contacts.CreateContact{
		FirstName:    b.firstName,
		LastName:     b.lastName,
		Email:        b.email,
		Description:  b.description,
		Company:      contact.CompanyFields{CompanyName: b.companyName},
		IfMatch:      p.match.list(), // If-None-Match always holds
		Sender:       sender,
		SessionToken: session,
	})
	if err != nil {
		return err
	}
	stateOf(r.Context()).contactID = created.Contact.ID.String()
	w.Header().Set("Location", contactPath(created.Contact.ID))
	setState(w.Header(), created.ETag, created.SessionToken)
	setReplayed(w.Header(), created.Replayed)
	status := http.StatusCreated
	if created.Replayed {
		status = http.StatusOK
	}
	writeJSON(w, status, mediaJSON, viewOf(created.Contact))
	return nil
}

// setState tells the client where the contact and its session are now. Either
// may be unknown.
func setState(h http.Header, etag, sessionToken string) {
	if etag != "" {
		h[headerETag] = []string{etag}
	}
	if sessionToken != "" {
		h[headerSession] = []string{sessionToken}
	}
}
