package httpapi

import (
	"net/http"

	"github.com/google/uuid"
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
	// answers is the media type of the answer, "" where it has no body. A
	// client that does not accept it gets 406.
	answers string
}

// routes is the whole API.
func (s *Server) routes() []route {
	return []route{
		{http.MethodPost, pathContacts, s.createContact, mediaJSON},
		{http.MethodGet, pathContacts, s.listContacts, mediaJSON},
		{http.MethodGet, pathContact, s.readContact, mediaJSON},
		{http.MethodDelete, pathContact, s.deleteContact, ""},
		{http.MethodPost, pathContact + "/update-name", s.updateName, ""},
		{http.MethodPost, pathContact + "/update-description", s.updateDescription, ""},
		{http.MethodPost, pathContact + "/update-email", s.updateEmail, ""},
		{http.MethodPost, pathContact + "/update-company", s.updateCompany, ""},
	}
}
