package httpapi

import (
	"net/http"

	"github.com/google/uuid"

	"feedbox/infrastructure/httpapi/auth"
)

const (
	pathContacts = "/api/contacts"
	pathContact  = pathContacts + "/{id}"
	pathAudit    = pathContact + "/audit"
)

// contactPath is the address of one contact.
func contactPath(id uuid.UUID) string { return pathContacts + "/" + id.String() }

// route is one operation: how it is reached, who answers, and what clients
// may rely on.
type route struct {
	method, path string
	handle       func(w http.ResponseWriter, r *http.Request) error
	// scope is what the caller must be allowed to do.
	scope auth.Scope
	// doc is what the OpenAPI document says.
	doc operation
}

// answers is the media type of the answer, "" where it has no body. A client
// that does not accept it gets 406.
func (r route) answers() string {
	for _, reply := range r.doc.replies {
		if reply.view != nil {
			return mediaJSON
		}
	}
	return ""
}

// routes is the whole API.
func (s *Server) routes() []route {
	routes := []route{
		{http.MethodPost, pathContacts, s.createContact, auth.Write, createDoc},
		{http.MethodGet, pathContacts, s.listContacts, auth.Read, listDoc},
		{http.MethodGet, pathContact, s.readContact, auth.Read, readDoc},
		{http.MethodPatch, pathContact, s.patchContact, auth.Write, patchDoc},
		{http.MethodDelete, pathContact, s.deleteContact, auth.Write, deleteDoc},
		{http.MethodPost, pathContact + "/update-name", s.updateName, auth.Write, updateDoc("name", &nameBody{})},
		{http.MethodPost, pathContact + "/update-description", s.updateDescription, auth.Write, updateDoc("description", &descriptionBody{})},
		{http.MethodPost, pathContact + "/update-email", s.updateEmail, auth.Write, updateDoc("email", &emailBody{})},
		{http.MethodPost, pathContact + "/update-company", s.updateCompany, auth.Write, updateDoc("company", &companyBody{})},
	}
	if s.options.Audit {
		routes = append(routes, route{http.MethodGet, pathAudit, s.readAudit, auth.Read, auditDoc})
	}
	return routes
}
