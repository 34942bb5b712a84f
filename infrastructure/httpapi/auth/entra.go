package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// skew is the tolerated difference to the issuer's clock.
const skew = 2 * time.Minute

// maxToken bounds the bytes that are parsed before the signature is checked.
const maxToken = 8 << 10

// EntraOptions configures an Entra authenticator.
type EntraOptions struct {
	// RolesOfUsers grants a user only the delegated scopes that are also app roles of the
	// user, because any user of the tenant may be able to delegate a scope to an application.
	// Default false: all delegated scopes.
	RolesOfUsers bool
	// Transport sends requests to the issuer; default http.DefaultTransport.
	Transport http.RoundTripper
	// Now is the clock for the validity times of tokens; default time.Now.
	Now func() time.Time
	// Floor is the minimum interval between two fetches of the signing keys; default 30 s.
	// A failed fetch may be retried after a sixth of it.
	Floor time.Duration
}

// Entra authenticates bearer tokens (RFC 6750): JWTs that one issuer signed with RS256 for
// one of the audiences. It fetches the discovery document and the signing keys on first
// use, so that the service can start during an outage of the identity provider.
type Entra struct {
	issuer    string
	audiences []string
	roles     bool // of users count
	now       func() time.Time
	client    *http.Client
	verifier  atomic.Pointer[oidc.IDTokenVerifier]
}

// NewEntra returns an authenticator of tokens whose iss is exactly issuer and whose aud is
// one of audiences. The issuer's discovery document is at
// issuer/.well-known/openid-configuration. Note that version 1 and version 2 tokens of a
// tenant have different issuers.
func NewEntra(issuer string, audiences []string, options *EntraOptions) (*Entra, error) {
	var o EntraOptions
	if options != nil {
		o = *options
	}
	var faults []error
	if issuer == "" {
		faults = append(faults, errors.New("the issuer is missing"))
	}
	if len(audiences) == 0 || slices.Contains(audiences, "") {
		faults = append(faults, errors.New("an audience is missing"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	o.Transport = cmp.Or(o.Transport, http.DefaultTransport)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Entra{
		issuer:    issuer,
		audiences: append([]string(nil), audiences...),
		roles:     o.RolesOfUsers,
		now:       o.Now,
		client:    &http.Client{Transport: newFloorTransport(o.Transport, cmp.Or(o.Floor, 30*time.Second)), Timeout: 10 * time.Second},
	}, nil
}

// Challenge returns Bearer.
func (e *Entra) Challenge() string { return "Bearer" }

// Authenticate verifies signature, issuer, audience and validity times of the bearer token.
func (e *Entra) Authenticate(ctx context.Context, r *http.Request) (Principal, error) {
	token, err := bearerToken(r)
	if err != nil {
		return Principal{}, err
	}
	verifier, err := e.lazyVerifier(ctx)
	if err != nil {
		return Principal{}, err
	}
	var fetch fetchOutcome
	verified, err := verifier.Verify(context.WithValue(ctx, fetchOutcomeKey{}, &fetch), token)
	switch {
	case err != nil && ctx.Err() != nil:
		return Principal{}, fmt.Errorf("verify token: %w", ctx.Err())
	case fetch.err != nil:
		return Principal{}, fmt.Errorf("%w: %w", ErrUnavailable, fetch.err)
	case err != nil:
		return Principal{}, ErrBadCredential // without err, because it may quote the token
	}
	return e.principal(verified)
}

func bearerToken(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", ErrNoCredential
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return "", ErrBadCredential
	}
	return strings.TrimLeft(token, " "), nil
}

// lazyVerifier builds the verifier from the discovery document, once. Concurrent callers
// share one fetch, see floorTransport.
func (e *Entra) lazyVerifier(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if v := e.verifier.Load(); v != nil {
		return v, nil
	}
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), e.client)
	provider, err := oidc.NewProvider(ctx, e.issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: discovery: %w", ErrUnavailable, err)
	}
	var metadata struct {
		JWKSURI string `json:"jwks_uri"`
	}
	if err := provider.Claims(&metadata); err != nil || metadata.JWKSURI == "" {
		return nil, fmt.Errorf("%w: the discovery document has no jwks_uri", ErrUnavailable)
	}
	verifier := oidc.NewVerifier(e.issuer, keySet{oidc.NewRemoteKeySet(ctx, metadata.JWKSURI)}, &oidc.Config{
		SupportedSigningAlgs: []string{oidc.RS256},
		SkipClientIDCheck:    true, // principal checks the audience, because there may be several
		SkipExpiryCheck:      true, // principal checks the times, because go-oidc tolerates no skew
	})
	e.verifier.Store(verifier)
	return verifier, nil
}

// principal checks audience and times, and returns the caller.
func (e *Entra) principal(token *oidc.IDToken) (Principal, error) {
	var c claims
	if err := token.Claims(&c); err != nil || c.Expiry == nil {
		return Principal{}, ErrBadCredential
	}
	now := e.now()
	switch {
	case !slices.ContainsFunc(token.Audience, func(audience string) bool { return slices.Contains(e.audiences, audience) }),
		now.After(unix(*c.Expiry).Add(skew)),
		c.NotBefore != nil && now.Before(unix(*c.NotBefore).Add(-skew)):
		return Principal{}, ErrBadCredential
	}
	subject := cmp.Or(c.ObjectID, c.Subject)
	if subject == "" {
		return Principal{}, ErrBadCredential
	}
	granted, err := c.granted(e.roles)
	if err != nil {
		return Principal{}, err
	}
	return Principal{ID: "entra:" + c.Tenant + ":" + subject, Scopes: granted}, nil
}

func unix(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }

// keySet records a failed fetch of keys in the context, because the verifier returns its
// errors as text only.
type keySet struct{ remote *oidc.RemoteKeySet }

type fetchOutcomeKey struct{}

type fetchOutcome struct{ err error }

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, jwt)
	var fetch *fetchError
	if outcome, ok := ctx.Value(fetchOutcomeKey{}).(*fetchOutcome); ok && errors.As(err, &fetch) {
		outcome.err = fetch
	}
	return payload, err
}
