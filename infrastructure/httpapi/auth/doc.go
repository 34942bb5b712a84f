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
