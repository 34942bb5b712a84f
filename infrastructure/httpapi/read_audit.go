package httpapi

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
)

// auditView is one page of a contact's audit trail.
type auditView struct {
	Items    []auditEntryView `json:"items" doc:"the entries of this page, oldest first"`
	HasMore  bool             `json:"hasMore" doc:"whether there is a next page; it may turn out to be empty"`
	NextLink string           `json:"nextLink,omitempty" doc:"address of the next page, absolute or relative to this one; absent on the last"`
}

type auditEntryView struct {
	Version   int64            `json:"version" doc:"version of the contact after the change"`
	At        time.Time        `json:"at" doc:"when it was changed"`
	Principal string           `json:"principal" doc:"who changed it; anonymous where callers are not authenticated"`
	Events    []auditEventView `json:"events" doc:"the events that came of it"`
}

type auditEventView struct {
	ID       uuid.UUID `json:"id" doc:"id of the event, also of its message"`
	Action   string    `json:"action" doc:"type of the event"`
	Sequence int64     `json:"sequence" doc:"place among all events of the contact, from 1"`
}

// readAudit answers 200 with one page of the audit trail.
func (s *Server) readAudit(w http.ResponseWriter, r *http.Request) error {
	id, err := contactID(r)
	if err != nil {
		return err
	}
	asked, err := s.pageRequestOf(r)
	if err != nil {
		return err
	}
	page, err := mediator.Send(r.Context(), s.mediator, contacts.ReadAudit{Trail: query.Trail{
		ID: id, PageSize: asked.size, Continuation: asked.continuation, SessionToken: asked.session,
	}})
	if err != nil {
		return err
	}
	view := auditView{Items: make([]auditEntryView, len(page.Entries)), HasMore: page.Continuation != ""}
	for i, entry := range page.Entries {
		view.Items[i] = viewOfEntry(entry)
	}
	if view.HasMore {
		view.NextLink = s.setNext(w.Header(), r, asked, page.Continuation)
	}
	setState(w.Header(), "", page.SessionToken)
	writeJSON(w, http.StatusOK, mediaJSON, view)
	return nil
}

func viewOfEntry(entry query.AuditEntry) auditEntryView {
	view := auditEntryView{Version: entry.Version, At: entry.At, Principal: entry.Principal, Events: make([]auditEventView, len(entry.Events))}
	if view.Principal == "" {
		view.Principal = "anonymous"
	}
	for i, e := range entry.Events {
		view.Events[i] = auditEventView(e)
	}
	return view
}
