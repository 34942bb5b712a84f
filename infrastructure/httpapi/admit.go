package httpapi

import (
	"errors"
	"net/http"
	"net/netip"

	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/auth"
)

// admit authenticates a request and checks the scope and the rate of its principal.
func (s *Server) admit(r *http.Request, scope auth.Scope) error {
	principal, err := s.options.Auth.Authenticate(r.Context(), r)
	if err != nil {
		return s.refusal(err)
	}
	x := stateOf(r.Context())
	x.principal = principal
	if !principal.May(scope) {
		return &requestError{
			status: http.StatusForbidden, code: "insufficient_scope", detail: "this needs the permission " + scope.Name,
			header: http.Header{"Www-Authenticate": {s.options.Auth.Challenge() + ` error="insufficient_scope", scope="` + scope.Name + `"`}},
		}
	}
	if principal.ID == auth.Anonymous {
		return nil
	}
	return s.take(principal.ID)
}

// take spends one request of caller's rate.
func (s *Server) take(caller string) error {
	if s.rates == nil {
		return nil
	}
	if wait := s.rates.take(caller); wait > 0 {
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
		if err := s.take(addressOf(r)); err != nil {
			refusal = err
		}
	}
	fail(w, r, refusal)
}

// addressOf returns the rate key of a remote address: for IPv6 its /64 network, because one
// customer usually has a whole network. The key cannot be the id of a principal.
func addressOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "from " + r.RemoteAddr
	}
	address := from.Addr().Unmap()
	if network, err := address.WithZone("").Prefix(64); err == nil && address.Is6() {
		return "from " + network.String()
	}
	return "from " + address.String()
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
