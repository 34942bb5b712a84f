package httpapi

import (
	"net/http"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
)

// deleteContact answers 204, also when the contact is deleted already.
func (s *Server) deleteContact(w http.ResponseWriter, r *http.Request) error {
	id, err := contactID(r)
	if err != nil {
		return err
	}
	target, err := s.target(r, id)
	if err != nil {
		return err
	}
	deleted, err := mediator.Send(r.Context(), s.mediator, contacts.DeleteContact{Target: target})
	if err != nil {
		return err
	}
	setState(w.Header(), deleted.ETag, deleted.SessionToken)
	setReplayed(w.Header(), deleted.Replayed)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
