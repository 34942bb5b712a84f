package httpapi

import (
	"net/http"

	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
)

// pageView is one page of contacts.
type pageView struct {
	Items    []itemView `json:"items" doc:"the contacts of this page, in no promised order"`
	HasMore  bool       `json:"hasMore" doc:"whether there is a next page; it may turn out to be empty"`
	NextLink string     `json:"nextLink,omitempty" doc:"address of the next page, absolute or relative to this one; absent on the last"`
}

// itemView is a contact in a page.
type itemView struct {
	ID          uuid.UUID `json:"id" doc:"id of the contact"`
	Email       *string   `json:"email" doc:"e-mail address, or null"`
	FullName    string    `json:"fullName" doc:"first and last name"`
	CompanyName string    `json:"companyName" doc:"name of the company"`
	ETag        string    `json:"etag" doc:"state of the contact, for If-Match"`
}

// listContacts answers 200 with one page.
func (s *Server) listContacts(w http.ResponseWriter, r *http.Request) error {
	asked, err := s.pageRequestOf(r)
	if err != nil {
		return err
	}
	page, err := mediator.Send(r.Context(), s.mediator, contacts.ReadContacts{
		PageSize: asked.size, Continuation: asked.continuation, SessionToken: asked.session,
	})
	if err != nil {
		return err
	}
	view := pageView{Items: make([]itemView, len(page.Items)), HasMore: page.Continuation != ""}
	for i, item := range page.Items {
		view.Items[i] = itemView(item)
	}
	if view.HasMore {
		view.NextLink = s.setNext(w.Header(), r, asked, page.Continuation)
	}
	setState(w.Header(), "", page.SessionToken)
	writeJSON(w, http.StatusOK, mediaJSON, view)
	return nil
}
