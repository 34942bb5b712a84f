// Package auth identifies the callers of the API and what they may do.
//
// It owns the three modes of authentication: none ([Open]), API keys
// ([APIKeys]) and tokens of Microsoft Entra ID or another OpenID provider
// ([Entra]). Which scope a request needs is decided by the routes.
//
// Invariants:
//   - A credential is never logged and never part of an error.
//   - A failure of the caller ([ErrNoCredential], [ErrBadCredential]) and a
//     failure to find out ([ErrUnavailable]) are different errors: the first
//     is answered with 401, the second with 503.
//   - There is a shortest time between two requests to the identity provider,
//     whatever unknown callers send.
//
// Goroutines: fetching signing keys runs in a goroutine of go-oidc that ends
// with the HTTP request, within its time-out.
package auth
