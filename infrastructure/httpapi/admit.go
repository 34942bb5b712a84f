package httpapi

import (
	"errors"
	"net/http"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/limit"
)

// admit authenticates a request and checks the rate and the scope of its principal. The rate is first,
// because refusals cost work and log lines too.
func (s *Server) admit(r *http.Request, scope auth.Scope) error {
	principal, err := s.options.Auth.Authenticate(r.Context(), r)
	if err != nil {
		return s.refusal(err)
	}
	x := stateOf(r.Context())
	x.principal = principal
	if principal.ID != auth.Anonymous {
		limit.Identify(r.Context(), principal.ID)
		if err := s.take(principal.ID); err != nil {
			return err
		}
	}
	if !principal.May(scope) {
		return &requestError{
			status: http.StatusForbidden, code: "insufficient_scope", detail: "this needs the permission " + scope.Name,
			header: http.Header{"Www-Authenticate": {s.options.Auth.Challenge() + ` error="insufficient_scope", scope="` + scope.Name + `"`}},
		}
	}
	return nil
}

// enter takes a place among the requests in flight, at most once, and protects the connection.
// A request with a body takes it once the body has arrived, because a caller that sends slowly
// must not hold a place. Until then it costs a connection and a part of a body, which have their
// own limits.
func (s *Server) enter(r *http.Request) error {
	x := stateOf(r.Context())
	if x.entered {
		return nil
	}
	entered, free := s.inFlight.Enter(x.sharer())
	switch {
	case entered:
		x.entered = true
		limit.Protect(r.Context())
		return nil
	case free:
		return &fault.Error{Kind: fault.Throttled, Code: "rate_limited", Message: "too many of your requests are being handled; wait for some of them", RetryAfter: time.Second}
	default:
		return &requestError{status: http.StatusServiceUnavailable, code: "overloaded", detail: "too many requests are being handled; come back soon"}
	}
}

// leave returns the place of a request, if it has one.
func (s *Server) leave(x *requestState) {
	if x.entered {
		x.entered = false
		s.inFlight.Leave(x.sharer())
	}
}

// take spends one request of caller's rate.
func (s *Server) take(caller string) error {
	if s.rates == nil {
		return nil
	}
	if wait := s.rates.Take(caller); wait > 0 {
		return &fault.Error{Kind: fault.Throttled, Code: "rate_limited", Message: "you have sent too many requests; wait as Retry-After says", RetryAfter: wait}
	}
	return nil
}

// turnAway refuses a request whose principal is unknown or whose route does not exist. Such
// requests share a rate per remote address, because otherwise they would have no limit.
// With a proxy in front, that is the address of the proxy: all refusals share one rate, but
// accepted requests do not spend it.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, refusal error) {
	_, open := s.options.Auth.(auth.Open)
	_, theirs := errors.AsType[*requestError](refusal) // an outage on our side must not cost the caller its rate
	if !open && theirs {
		if err := s.take(limit.AddressOf(r.RemoteAddr)); err != nil {
			refusal = err
		}
	}
	fail(w, r, refusal)
}

// refusal returns the answer to an authentication error. Without a credential it has no
// error code (RFC 6750 §3).
func (s *Server) refusal(err error) error {
	refuse := func(code, detail, parameters string) error {
		return &requestError{
			status: http.StatusUnauthorized, code: code, detail: detail,
			header: http.Header{"Www-Authenticate": {s.options.Auth.Challenge() + parameters}},
		}
	}
	switch {
	case errors.Is(err, auth.ErrNoCredential):
		return refuse("unauthenticated", "a credential is needed", ` realm="feedbox"`)
	case errors.Is(err, auth.ErrBadCredential):
		return refuse("invalid_credential", "the credential is not valid here, or has expired", ` realm="feedbox", error="invalid_token"`)
	case errors.Is(err, auth.ErrUnavailable):
		return fault.Wrap(fault.Unavailable, "identity_unavailable", "callers cannot be verified at the moment", err)
	default:
		return err
	}
}
