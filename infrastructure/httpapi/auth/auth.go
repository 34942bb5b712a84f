// Package auth authenticates the callers of the API and returns their scopes.
//
// It owns the three modes of authentication: none ([Open]), API keys
// ([APIKeys]) and tokens of Microsoft Entra ID or another OpenID provider
// ([Entra]). The routes decide which scope a request needs.
//
// Invariants:
//   - A credential is never logged and never part of an error.
//   - An invalid credential ([ErrNoCredential], [ErrBadCredential]) and a failed
//     check ([ErrUnavailable]) are different errors: the first is answered with
//     401, the second with 503.
//   - Requests to the identity provider have a minimum interval, whatever
//     unauthenticated callers send.
//
// Goroutines: go-oidc fetches signing keys in a goroutine that ends with the HTTP
// request, within its timeout.
package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
)

// Scope is a permission that a route requires: to read resources, or to change them.
type Scope struct {
	// Name is the name in tokens, such as orders.read.
	Name string
	// Write is true for a scope to change resources.
	Write bool
	// Audit is true for a scope to read in audit trails who the other callers are.
	Audit bool
}

// Read returns the scope to read the resources with the given plural.
func Read(plural string) Scope { return Scope{Name: plural + ".read"} }

// Write returns the scope to change the resources with the given plural.
func Write(plural string) Scope { return Scope{Name: plural + ".write", Write: true} }

// Audit returns the scope to read in the audit trails of the resources with the given plural who the
// other callers are.
func Audit(plural string) Scope { return Scope{Name: plural + ".audit", Audit: true} }

// Principal is an authenticated caller.
type Principal struct {
	// ID is stable, and unique within its mode of authentication.
	ID string
	// Scopes lists the names of the granted scopes.
	Scopes []string
	// ReadsAll, WritesAll and AuditsAll grant every read scope, every write scope and every audit
	// scope.
	ReadsAll, WritesAll, AuditsAll bool
}

// May reports whether the principal has the scope.
func (p Principal) May(scope Scope) bool {
	all := p.ReadsAll
	switch {
	case scope.Audit:
		all = p.AuditsAll
	case scope.Write:
		all = p.WritesAll
	}
	return all || slices.Contains(p.Scopes, scope.Name)
}

// Pseudonym returns the name of the principal in logs: it is stable for a key. Without the key, it
// cannot be computed from an id that someone guesses.
func (p Principal) Pseudonym(key []byte) string {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("feedbox principal v1 " + p.ID)) // a hash never returns an error
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

// Authenticator finds the principal of a request. Implementations are safe
// for concurrent use.
type Authenticator interface {
	// Authenticate returns the caller, or one of this package's errors.
	Authenticate(ctx context.Context, r *http.Request) (Principal, error)
	// Challenge returns the scheme for WWW-Authenticate of a 401, such as Bearer.
	Challenge() string
}

// Errors of Authenticate.
var (
	// ErrNoCredential means that the request has no credential.
	ErrNoCredential = errors.New("no credential was sent")
	// ErrBadCredential means that the credential is invalid or has expired.
	ErrBadCredential = errors.New("the credential is not valid")
	// ErrUnavailable means that the credential could not be checked.
	ErrUnavailable = errors.New("the identity provider cannot be reached")
)

// Open admits all callers with all scopes. It is for loopback addresses and for services
// that another component protects.
type Open struct{}

// Authenticate returns the principal "anonymous" with all scopes.
func (Open) Authenticate(context.Context, *http.Request) (Principal, error) {
	return Principal{ID: Anonymous, ReadsAll: true, WritesAll: true, AuditsAll: true}, nil
}

// Challenge returns "", because Open never refuses a caller.
func (Open) Challenge() string { return "" }

// Anonymous is the id of the only principal of Open.
const Anonymous = "anonymous"
