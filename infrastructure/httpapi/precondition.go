package httpapi

import (
	"net/http"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/fault"
)

// preconditions are the conditional headers of a request.
type preconditions struct {
	match, noneMatch tagList
}

// preconditionsOf reads If-Match and If-None-Match. The request header ETag of the original
// sample replaces one of them, which legacy selects.
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
			return p, badRequest("invalid_precondition", "ETag and a standard precondition are both given: send only the standard one")
		}
		*standard = old
	}
	return p, nil
}

// target reads id, preconditions and sender of a change. With RequirePrecondition it
// refuses a change without If-Match with 428 (RFC 6585 §3).
func (c *collection) target(r *http.Request, id uuid.UUID) (command.Target, error) {
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
	if c.options.RequirePrecondition && !p.match.present() {
		return target, &requestError{
			status: http.StatusPreconditionRequired, code: "precondition_required",
			detail: "send If-Match with the ETag that you have read, or * for any state",
		}
	}
	if p.noneMatch.present() {
		return c.targetNoneMatch(r, p, target)
	}
	return target, nil
}

// targetNoneMatch evaluates If-None-Match on a change: the change fails if the aggregate is
// in one of the listed states. Otherwise it is bound to the compared state with If-Match,
// so that a concurrent change makes it fail.
func (c *collection) targetNoneMatch(r *http.Request, p preconditions, target command.Target) (command.Target, error) {
	etag, session, err := c.current(r.Context(), query.Read{ID: target.ID, SessionToken: target.SessionToken})
	switch {
	case fault.Is(err, fault.NotFound):
		return target, nil // no state can match; the command decides
	case err != nil:
		return target, err
	case p.noneMatch.matchesWeak(etag):
		return target, c.errStale
	case p.match.present() && !p.match.matchesStrong(etag):
		return target, nil // the command refuses it, unless it is a repeat
	}
	target.IfMatch = []string{etag}
	target.SessionToken = session
	return target, nil
}
