package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
)

// Scope is a permission, which a route asks for: to read resources, or to change them.
type Scope struct {
	// Name is what tokens have, such as orders.read.
	Name string
	// Write tells a scope to change from one to read.
	Write bool
}

// Read is the scope to read the resources that are called so in the plural.
func Read(plural string) Scope { return Scope{Name: plural + ".read"} }

// Write is the scope to change the resources that are called so in the plural.
func Write(plural string) Scope { return Scope{Name: plural + ".write", Write: true} }

// Principal is an authenticated caller.
type Principal struct {
	// ID is stable for the caller and unique among all of the mode.
	ID string
	// Scopes are the names of what the caller may do.
	Scopes []string
	// ReadsAll and WritesAll allow every scope to read and every scope to change.
	ReadsAll, WritesAll bool
}

// May tells whether the principal has the scope.
func (p Principal) May(scope Scope) bool {
	if scope.Write && p.WritesAll || !scope.Write && p.ReadsAll {
		return true
	}
	return slices.Contains(p.Scopes, scope.Name)
}

// Pseudonym stands for the principal in logs: the same caller has the same
// pseudonym, from which the caller cannot be told without knowing the id.
func (p Principal) Pseudonym() string {
	sum := sha256.Sum256([]byte(p.ID))
	return hex.EncodeToString(sum[:6])
}

// Authenticator finds the principal of a request. Implementations are safe
// for concurrent use.
type Authenticator interface {
	// Authenticate returns the caller, or one of this package's errors.
	Authenticate(ctx context.Context, r *http.Request) (Principal, error)
	// Challenge is the value of WWW-Authenticate for a 401, without
	// parameters, such as Bearer.
	Challenge() string
}

// Errors of Authenticate.
var (
	// ErrNoCredential: the request carries none.
	ErrNoCredential = errors.New("no credential was sent")
	// ErrBadCredential: it is not valid here, or not any more.
	ErrBadCredential = errors.New("the credential is not valid")
	// ErrUnavailable: it could not be judged.
	ErrUnavailable = errors.New("the identity provider cannot be reached")
)

// Open lets everybody do everything. It is for loopback addresses and for
// services behind another guard.
type Open struct{}

// Authenticate returns the principal "anonymous" with all scopes.
func (Open) Authenticate(context.Context, *http.Request) (Principal, error) {
	return everybody, nil
}

// Challenge returns "": nobody is refused.
func (Open) Challenge() string { return "" }

// Anonymous is the id of the only principal of Open.
const Anonymous = "anonymous"

var everybody = Principal{ID: Anonymous, ReadsAll: true, WritesAll: true}
