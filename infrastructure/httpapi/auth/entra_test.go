package auth_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/httpapi/auth"
)

// issuer is an OpenID provider with one signing key.
type issuer struct {
	*httptest.Server
	key        *rsa.PrivateKey
	kid        atomic.Value // string
	fetches    atomic.Int64 // of the key set
	discovered atomic.Int64
	down       atomic.Bool
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	i.kid.Store("k1")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.discovered.Add(1)
		if i.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		if i.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "kid": i.kid.Load(), "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		i.Close()
	})
	return i
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// good returns the claims of a valid token.
func (i *issuer) good() map[string]any {
	return map[string]any{
		"iss": i.URL, "aud": "api://feedbox", "sub": "subject", "oid": "object", "tid": "tenant",
		"exp": now.Add(time.Hour).Unix(), "nbf": now.Add(-time.Hour).Unix(), "iat": now.Add(-time.Hour).Unix(),
		"scp": "contacts.read contacts.write User.Read",
	}
}

// sign returns a token. With alg RS256 the issuer's key signs it.
func (i *issuer) sign(t testing.TB, alg, kid string, claims map[string]any) string {
	t.Helper()
	header, _ := json.Marshal(map[string]any{"alg": alg, "kid": kid, "typ": "JWT"})
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	input := b64(header) + "." + b64(payload)
	sum := sha256.Sum256([]byte(input))
	var signature []byte
	switch alg {
	case "RS256":
		if signature, err = rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:]); err != nil {
			t.Fatal(err)
		}
	case "PS256":
		if signature, err = rsa.SignPSS(rand.Reader, i.key, crypto.SHA256, sum[:], nil); err != nil {
			t.Fatal(err)
		}
	case "HS256": // the classical confusion: the public key as the secret
		mac := hmac.New(sha256.New, i.key.N.Bytes())
		mac.Write([]byte(input))
		signature = mac.Sum(nil)
	}
	return input + "." + b64(signature)
}

func newEntra(t testing.TB, i *issuer, floor time.Duration) *auth.Entra {
	t.Helper()
	return newEntraOf(t, i, &auth.EntraOptions{Floor: floor})
}

func newEntraOf(t testing.TB, i *issuer, o *auth.EntraOptions) *auth.Entra {
	t.Helper()
	o.Now = func() time.Time { return now }
	entra, err := auth.NewEntra(i.URL, []string{"api://feedbox", "client-id"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return entra
}

func TestEntraTokens(t *testing.T) {
	i := newIssuer(t)
	entra := newEntra(t, i, time.Hour)
	with := func(changes ...any) map[string]any {
		claims := i.good()
		for n := 0; n < len(changes); n += 2 {
			name := changes[n].(string)
			if changes[n+1] == nil {
				delete(claims, name)
			} else {
				claims[name] = changes[n+1]
			}
		}
		return claims
	}
	// application returns the claims of a token that an application got for itself.
	application := func(changes ...any) map[string]any {
		return with(append([]any{"scp", nil, "sub", "object", "azp", "caller", "roles", []string{"contacts.write"}}, changes...)...)
	}
	rs256 := func(claims map[string]any) string { return "Bearer " + i.sign(t, "RS256", "k1", claims) }
	valid := i.sign(t, "RS256", "k1", i.good())
	dot := strings.LastIndexByte(valid, '.')
	for name, tc := range map[string]struct {
		header string
		want   string // the principal, "" is refused
		scopes string
	}{
		"valid":              {"Bearer " + valid, "entra:tenant:object", "rw"},
		"lower-case scheme":  {"bearer " + valid, "entra:tenant:object", "rw"},
		"other audience":     {rs256(with("aud", []string{"x", "client-id"})), "entra:tenant:object", "rw"},
		"read only":          {rs256(with("scp", "contacts.read")), "entra:tenant:object", "r"},
		"empty scope":        {rs256(with("scp", "")), "entra:tenant:object", ""},
		"scope and role":     {rs256(with("scp", "contacts.read", "roles", []string{"contacts.write"})), "entra:tenant:object", "r"},
		"other scope, role":  {rs256(with("scp", "User.Read", "roles", []string{"contacts.write"})), "entra:tenant:object", ""},
		"empty scope, role":  {rs256(with("scp", "", "roles", []string{"contacts.write"})), "entra:tenant:object", ""},
		"of an app, scope":   {rs256(with("scp", "contacts.read", "roles", []string{"contacts.write"}, "idtyp", "app")), "entra:tenant:object", "r"},
		"scope by prefix":    {rs256(with("scp", "contacts.readwrite xcontacts.read")), "entra:tenant:object", ""},
		"application":        {rs256(application()), "entra:tenant:object", "w"},
		"application, v1":    {rs256(application("azp", nil, "appid", "caller")), "entra:tenant:object", "w"},
		"application, typed": {rs256(application("azp", nil, "sub", "subject", "idtyp", "app")), "entra:tenant:object", "w"},
		"application, other": {rs256(application("azp", nil, "oid", nil, "tid", nil, "sub", "caller", "client_id", "caller")), "entra::caller", "w"},
		"roles of a user":    {rs256(application("sub", "subject")), "", ""},
		"typed as a user's":  {rs256(application("idtyp", "user")), "", ""},
		"no client":          {rs256(application("azp", nil)), "", ""},
		"neither, no scope":  {rs256(with("scp", nil)), "", ""},
		"ID token":           {rs256(with("scp", nil, "roles", []string{"contacts.write"}, "nonce", "n", "name", "Jane")), "", ""},
		"ID token, no nonce": {rs256(with("scp", nil, "roles", []string{"contacts.write"}, "preferred_username", "jane@contoso.example")), "", ""},
		"ID token, scope":    {rs256(with("nonce", "n")), "", ""},
		"ID token, hash":     {rs256(application("at_hash", "h")), "", ""},
		"ID token, code":     {rs256(application("c_hash", "h")), "", ""},
		"subject only":       {rs256(with("oid", nil)), "entra:tenant:subject", "rw"},
		"just expired":       {rs256(with("exp", now.Add(-119*time.Second).Unix())), "entra:tenant:object", "rw"},
		"nearly valid":       {rs256(with("nbf", now.Add(119*time.Second).Unix())), "entra:tenant:object", "rw"},
		"expired":            {rs256(with("exp", now.Add(-121*time.Second).Unix())), "", ""},
		"without expiry":     {rs256(with("exp", nil)), "", ""},
		"not yet valid":      {rs256(with("nbf", now.Add(121*time.Second).Unix())), "", ""},
		"foreign audience":   {rs256(with("aud", "api://other")), "", ""},
		"no audience":        {rs256(with("aud", nil)), "", ""},
		"foreign issuer":     {rs256(with("iss", "https://evil.example")), "", ""},
		"issuer with slash":  {rs256(with("iss", i.URL+"/")), "", ""},
		"no subject":         {rs256(with("oid", nil, "sub", nil)), "", ""},
		"roles are no list":  {rs256(application("roles", "contacts.write")), "", ""},
		"alg none":           {"Bearer " + i.sign(t, "none", "k1", i.good()), "", ""},
		"HS256":              {"Bearer " + i.sign(t, "HS256", "k1", i.good()), "", ""},
		"PS256":              {"Bearer " + i.sign(t, "PS256", "k1", i.good()), "", ""},
		"unknown key id":     {"Bearer " + i.sign(t, "RS256", "k9", i.good()), "", ""},
		"broken signature":   {"Bearer " + valid[:dot+1] + b64(make([]byte, 256)), "", ""},
		"changed payload":    {"Bearer " + valid[:dot-4] + "AAAA" + valid[dot:], "", ""},
		"no signature":       {"Bearer " + valid[:dot+1], "", ""},
		"garbage":            {"Bearer garbage", "", ""},
		"basic":              {"Basic dXNlcjpwYXNz", "", ""},
		"scheme alone":       {"Bearer", "", ""},
		"too long":           {"Bearer " + strings.Repeat("a", 9000), "", ""},
		"claims of no shape": {"Bearer " + i.sign(t, "RS256", "k1", map[string]any{"iss": i.URL, "aud": "api://feedbox", "exp": "soon"}), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			principal, err := entra.Authenticate(t.Context(), request("Authorization", tc.header))
			if tc.want == "" {
				if !errors.Is(err, auth.ErrBadCredential) {
					t.Errorf("got %+v, %v, want it refused", principal, err)
				}
				return
			}
			scopes := ""
			if principal.May(auth.Read("contacts")) {
				scopes += "r"
			}
			if principal.May(auth.Write("contacts")) {
				scopes += "w"
			}
			if err != nil || principal.ID != tc.want || scopes != tc.scopes {
				t.Errorf("got %+v, %v", principal, err)
			}
		})
	}
	if _, err := entra.Authenticate(t.Context(), request("Authorization")); !errors.Is(err, auth.ErrNoCredential) {
		t.Errorf("no header: %v", err)
	}
	if _, err := entra.Authenticate(t.Context(), request("Authorization", "Bearer "+valid, "Bearer "+valid)); !errors.Is(err, auth.ErrBadCredential) {
		t.Errorf("two headers: %v", err)
	}
	if n, d := i.fetches.Load(), i.discovered.Load(); n != 1 || d != 1 {
		t.Errorf("the keys were fetched %d times, the discovery document %d times, within the floor", n, d)
	}
}

// With RolesOfUsers, a scope that a user delegated counts only if the user has the role, and a
// role only if it was delegated.
func TestRolesOfUsersLimitTheirScopes(t *testing.T) {
	i := newIssuer(t)
	entra := newEntraOf(t, i, &auth.EntraOptions{RolesOfUsers: true})
	for name, tc := range map[string]struct {
		scopes any // nil: the token of an application
		roles  any
		want   []string // nil: refused
	}{
		"no roles":           {"contacts.read contacts.write", nil, []string{}},
		"one role":           {"contacts.read contacts.write", []string{"contacts.read"}, []string{"contacts.read"}},
		"role not delegated": {"contacts.read", []string{"contacts.read", "contacts.write"}, []string{"contacts.read"}},
		"roles are no list":  {"contacts.read", "contacts.read", nil},
		"application":        {nil, []string{"contacts.write"}, []string{"contacts.write"}},
	} {
		claims := i.good()
		claims["scp"], claims["roles"] = tc.scopes, tc.roles
		if tc.scopes == nil {
			delete(claims, "scp")
			claims["idtyp"] = "app"
		}
		principal, err := entra.Authenticate(t.Context(), request("Authorization", "Bearer "+i.sign(t, "RS256", "k1", claims)))
		if tc.want == nil {
			if !errors.Is(err, auth.ErrBadCredential) {
				t.Errorf("%s: got %+v, %v, want it refused", name, principal, err)
			}
			continue
		}
		if err != nil || !slices.Equal(principal.Scopes, tc.want) {
			t.Errorf("%s: got %v, %v, want %v", name, principal.Scopes, err, tc.want)
		}
	}
}

// A new signing key is fetched once the floor has passed.
func TestEntraKeyRotation(t *testing.T) {
	i := newIssuer(t)
	entra := newEntra(t, i, time.Nanosecond)
	for _, kid := range []string{"k1", "k2"} {
		i.kid.Store(kid)
		try := func() error {
			_, err := entra.Authenticate(t.Context(), request("Authorization", "Bearer "+i.sign(t, "RS256", kid, i.good())))
			return err
		}
		err := try()
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = try() {
			time.Sleep(time.Millisecond) // go-oidc shares a fetch for a moment after it has ended
		}
		if err != nil {
			t.Errorf("key %s: %v", kid, err)
		}
	}
}

// During an outage of the issuer, callers get ErrUnavailable, and concurrent callers cause
// one fetch. The authenticator recovers, and cached keys survive the next outage.
func TestEntraOutageIsUnavailable(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	entra := newEntra(t, i, time.Hour)
	token := "Bearer " + i.sign(t, "RS256", "k1", i.good())
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if _, err := entra.Authenticate(t.Context(), request("Authorization", token)); !errors.Is(err, auth.ErrUnavailable) {
				t.Errorf("during the outage: %v", err)
			}
		})
	}
	callers.Wait()
	if n := i.discovered.Load(); n != 1 {
		t.Errorf("50 callers caused %d fetches, want 1", n)
	}
	entra = newEntra(t, i, time.Nanosecond)
	if _, err := entra.Authenticate(t.Context(), request("Authorization", token)); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("during the outage: %v", err)
	}
	i.down.Store(false)
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := entra.Authenticate(t.Context(), request("Authorization", token))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the outage: %v", err)
		}
	}
	i.down.Store(true)
	if _, err := entra.Authenticate(t.Context(), request("Authorization", token)); err != nil {
		t.Errorf("with known keys: %v", err)
	}
}

func TestInvalidEntraOptionsAreListed(t *testing.T) {
	if _, err := auth.NewEntra("", []string{""}, nil); err == nil || !strings.Contains(err.Error(), "issuer") || !strings.Contains(err.Error(), "audience") {
		t.Errorf("got %v", err)
	}
}

// FuzzBearer sends arbitrary credentials: none may be accepted or cause a panic.
func FuzzBearer(f *testing.F) {
	i := newIssuer(f)
	entra := newEntra(f, i, time.Hour)
	expired := i.good()
	expired["exp"] = 1
	f.Add("Bearer " + i.sign(f, "RS256", "k1", expired))
	f.Add("Bearer " + i.sign(f, "HS256", "k1", i.good()))
	f.Add("Bearer a.b.c")
	f.Add("Bearer eyJhbGciOiJub25lIn0.e30.")
	f.Add("bearer")
	f.Fuzz(func(t *testing.T, header string) {
		r := request("")
		r.Header["Authorization"] = []string{header}
		if principal, err := entra.Authenticate(t.Context(), r); err == nil {
			t.Fatalf("%q was accepted as %+v", header, principal)
		}
	})
}
