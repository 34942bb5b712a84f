// Package auth finds out who calls the API and what the caller may do.
//
// It owns the three modes of authentication: none ([Open]), API keys
// ([APIKeys]) and tokens of Microsoft Entra ID or another OpenID provider
// ([Entra]). What a scope is needed for is decided by the routes.
//
// Invariants:
//   - A credential is never logged and never part of an error.
//   - A failure of the caller ([ErrNoCredential], [ErrBadCredential]) and a
//     failure to find out ([ErrUnavailable]) are different errors: the first
//     is answered with 401, the second with 503.
//   - Unknown callers cannot make this process call the identity provider
//     more often than the floor between two fetches allows.
//
// Goroutines: fetching signing keys runs in a goroutine of go-oidc that ends
// with the HTTP request, within its time-out.
package auth
