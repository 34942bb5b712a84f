package httpapi

import (
	"net/http"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
)

// preconditions are what a request demands of the contact's state.
type preconditions struct {
	match, noneMatch tagList
}

// preconditionsOf reads If-Match and If-None-Match. The header ETag of the
// original sample stands for legacy, the one that it meant there.
func preconditionsOf(h http.Header, legacy func(*preconditions) *tagList) (preconditions, error) {
	var p preconditions
	var err error
	if p.match, err = tagsOf(h, "If-Match"); err != nil {
		return p, err
	}
	if p.noneMatch, err = tagsOf(h, "If-None-Match"); err != nil {
		return p, err
	}
	old, err := legacyTag(h)
	if err != nil {
		return p, err
	}
	if old.present() {
		standard := legacy(&p)
		if standard.present() {
			return p, badRequest("invalid_precondition", "ETag and a standard precondition are both given: send the standard one only")
		}
		*standard = old
	}
	return p, nil
}

var errPreconditionFailed = &requestError{
	status: http.StatusPreconditionFailed, code: "precondition_failed",
	detail: "the contact is not in the state that the precondition demands",
}

// target reads the preconditions of a change of a contact. In strict mode a change
// without If-Match is refused with 428 (RFC 6585 §3).
func (s *Server) target(r *http.Request, id uuid.UUID) (command.Target, error) {
	p, err := preconditionsOf(r.Header, func(p *preconditions) *tagList { return &p.match })
	if err != nil {
		return command.Target{}, err
	}
	session, err := single(r.Header, headerSession)
	if err != nil {
		return command.Target{}, err
	}
	sender, err := senderOf(r)
	if err != nil {
		return command.Target{}, err
	}
	target := command.Target{ID: id, IfMatch: p.match.list(), Sender: sender, SessionToken: session}
	if s.options.RequirePrecondition && !p.match.present() {
		return target, &requestError{
			status: http.StatusPreconditionRequired, code: "precondition_required",
			detail: "send If-Match with the ETag that you have read, or * for any state",
		}
	}
	if p.noneMatch.present() {
		return s.targetNoneMatch(r, p, target)
	}
	return target, nil
}

// targetNoneMatch evaluates If-None-Match on a change: it fails if the
// contact is in one of the listed states. The change is then bound to the
// state that was compared, so that nothing can come between.
func (s *Server) targetNoneMatch(r *http.Request, p preconditions, target command.Target) (command.Target, error) {
	read, err := mediator.Send(r.Context(), s.mediator, contacts.ReadContact{Read: query.Read{ID: target.ID, SessionToken: target.SessionToken}})
	switch {
	case fault.Is(err, fault.NotFound):
		return target, nil // nothing that could match; the command says what that means
	case err != nil:
		return target, err
	case p.noneMatch.matchesWeak(read.ETag):
		return target, errPreconditionFailed
	case p.match.present() && !p.match.matchesStrong(read.ETag):
		return target, nil // the command refuses it, unless it is a repeat
	}
	target.IfMatch = []string{read.ETag}
	target.SessionToken = read.SessionToken
	return target, nil
}

// errNoSuchContact is the answer to an id that is not one. It equals that of
// an id that does not exist.
var errNoSuchContact = &requestError{status: http.StatusNotFound, code: "contact_not_found", detail: "there is no such contact"}

// contactID reads the id in the path. Only the form that the service writes, of 36
// characters in lower case, is an id, so that a contact has one address.
func contactID(r *http.Request) (uuid.UUID, error) {
	text := r.PathValue("id")
	id, err := uuid.Parse(text)
	if err != nil || text != id.String() || id == uuid.Nil {
		return uuid.Nil, errNoSuchContact
	}
	stateOf(r.Context()).contactID = id.String()
	return id, nil
}
