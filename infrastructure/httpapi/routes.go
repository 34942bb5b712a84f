package httpapi

import (
	"net/http"

	"github.com/google/uuid"

	"feedbox/infrastructure/httpapi/auth"
)

const (
	pathContacts = "/api/contacts"
	pathContact  = pathContacts + "/{id}"
)

// contactPath is the address of one contact.
func contactPath(id uuid.UUID) string { return pathContacts + "/" + id.String() }

// route is one operation: how it is reached and who answers.
type route struct {
	method, path string
	handle       func(w http.ResponseWriter, r *http.Request) error
	// scope is what the caller must be allowed to do.
	scope auth.Scope
	// answers is the media type of the answer, "" where it has no body. A
	// client that does not accept it gets 406.
	answers string
}

// routes is the whole API.
func (s *Server) routes() []route {
	return []route{
		{http.MethodPost, pathContacts, s.createContact, auth.Write, mediaJSON},
		{http.MethodGet, pathContacts, s.listContacts, auth.Read, mediaJSON},
		{http.MethodGet, pathContact, s.readContact, auth.Read, mediaJSON},
		{http.MethodDelete, pathContact, s.deleteContact, auth.Write, ""},
		{http.MethodPost, pathContact + "/update-name", s.updateName, auth.Write, ""},
		{http.MethodPost, pathContact + "/update-description", s.updateDescription, auth.Write, ""},
		{http.MethodPost, pathContact + "/update-email", s.updateEmail, auth.Write, ""},
		{http.MethodPost, pathContact + "/update-company", s.updateCompany, auth.Write, ""},
	}
}
