package httpapi

import (
	"net/http"
	"strings"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
)

// readContact answers 200 with the contact, or 304 where the client has it.
func (s *Server) readContact(w http.ResponseWriter, r *http.Request) error {
	id, err := contactID(r)
	if err != nil {
		return err
	}
	p, err := preconditionsOf(r.Header, func(p *preconditions) *tagList { return &p.noneMatch })
	if err != nil {
		return err
	}
	session, err := single(r.Header, headerSession)
	if err != nil {
		return err
	}
	in := contacts.ReadContact{Read: query.Read{ID: id, SessionToken: session}}
	// One tag is compared by the store, which then sends no document. More are
	// compared here, because a 304 must name the one that matched.
	single := ""
	if len(p.noneMatch.tags) == 1 && !p.match.present() {
		single = strings.TrimPrefix(p.noneMatch.tags[0], "W/")
		in.IfNoneMatch = []string{single}
	}
	read, err := mediator.Send(r.Context(), s.mediator, in)
	if fault.Is(err, fault.NotModified) {
		return notModified(w, single)
	}
	if err != nil {
		return err
	}
	if p.match.present() && !p.match.matchesStrong(read.ETag) {
		return errPreconditionFailed
	}
	setState(w.Header(), read.ETag, read.SessionToken)
	if p.noneMatch.matchesWeak(read.ETag) {
		return notModified(w, read.ETag)
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	writeJSON(w, http.StatusOK, mediaJSON, viewOf(read.Contact))
	return nil
}

// notModified answers 304 with the headers that the 200 would have had.
func notModified(w http.ResponseWriter, etag string) error {
	setState(w.Header(), etag, "")
	w.Header().Set("Cache-Control", "private, no-cache")
	return fault.New(fault.NotModified, "", "the contact has not changed")
}
