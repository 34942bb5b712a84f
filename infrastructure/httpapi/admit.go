package httpapi

import (
	"errors"
	"net/http"

	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/auth"
)

// admit lets a request in: its principal is known, may do what the scope
// stands for, and has not used up its rate.
func (s *Server) admit(r *http.Request, scope auth.Scope) error {
	principal, err := s.options.Auth.Authenticate(r.Context(), r)
	if err != nil {
		return s.refusal(err)
	}
	x := exchangeOf(r.Context())
	x.principal = principal
	if !principal.May(scope) {
		return &requestError{
			status: http.StatusForbidden, code: "insufficient_scope", detail: "this needs the permission " + string(scope),
			header: http.Header{"Www-Authenticate": {s.options.Auth.Challenge() + ` error="insufficient_scope", scope="` + string(scope) + `"`}},
		}
	}
	if s.rates != nil && principal.ID != auth.Anonymous {
		if wait := s.rates.take(principal.ID); wait > 0 {
			return &fault.Error{Kind: fault.Throttled, Code: "rate_limited", Message: "you have sent too many requests; wait as Retry-After says", RetryAfter: wait}
		}
	}
	return nil
}

// refusal turns an error of authentication into the answer to it (RFC 6750
// §3: no error code where no credential was sent).
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
