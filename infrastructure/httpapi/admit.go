package httpapi

import (
	"errors"
	"net/http"
	"net/netip"

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

// turnAway answers a request that is refused before anybody knows who sent it, or that
// leads nowhere. Such requests have a rate for each address they come from, or they would
// be the only ones without. Behind a proxy that is the proxy's address: the refusals of
// all share a rate then, and what is not refused never spends it.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, refusal error) {
	_, open := s.options.Auth.(auth.Open)
	_, theirs := errors.AsType[*requestError](refusal) // an outage of ours costs them nothing
	if !open && theirs {
		if err := s.take(addressOf(r)); err != nil {
			refusal = err
		}
	}
	fail(w, r, refusal)
}

// addressOf is where a request comes from: the address, of version 6 the network that
// one customer usually has. It cannot be the id of a principal.
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
