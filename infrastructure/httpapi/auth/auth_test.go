package auth_test

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"feedbox/infrastructure/httpapi/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request returns a request with one header, if a value is given.
func request(header string, values ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/contacts", nil)
	for _, value := range values {
		r.Header.Add(header, value)
	}
	return r
}

func TestOpen(t *testing.T) {
	principal, err := auth.Open{}.Authenticate(t.Context(), request(""))
	if err != nil || principal.ID != auth.Anonymous || !principal.May(auth.Read("contacts")) || !principal.May(auth.Write("contacts")) {
		t.Errorf("got %+v, %v", principal, err)
	}
}

func TestAPIKeys(t *testing.T) {
	keys, err := auth.NewAPIKeys([]auth.APIKey{
		{Principal: "shop", Write: true, Hash: sha256.Sum256([]byte("old-key"))},
		{Principal: "shop", Write: true, Hash: sha256.Sum256([]byte("new-key"))},
		{Principal: "report", Hash: sha256.Sum256([]byte("read-key"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sent, want := range map[string]struct {
		id    string
		write bool
		err   error
	}{
		"old-key":  {"apikey:shop", true, nil},
		"new-key":  {"apikey:shop", true, nil},
		"read-key": {"apikey:report", false, nil},
		"no-key":   {"", false, auth.ErrBadCredential},
		"":         {"", false, auth.ErrNoCredential},
		"old-key2": {"", false, auth.ErrBadCredential},
	} {
		principal, err := keys.Authenticate(t.Context(), request(auth.HeaderAPIKey, sent))
		if !errors.Is(err, want.err) || principal.ID != want.id || principal.May(auth.Write("contacts")) != want.write || principal.May(auth.Read("contacts")) != (want.err == nil) {
			t.Errorf("%q: got %+v, %v", sent, principal, err)
		}
	}
	if keys.Challenge() == "" {
		t.Error("no challenge")
	}
}

func TestInvalidAPIKeysAreListed(t *testing.T) {
	hash := func(text string) [32]byte { return sha256.Sum256([]byte(text)) }
	_, err := auth.NewAPIKeys([]auth.APIKey{
		{Principal: "a", Hash: hash("1")},
		{Principal: "a", Hash: hash("2")},
		{Principal: "a", Hash: hash("3")},
		{Principal: "b", Hash: hash("1")},
		{Hash: hash("4")},
	})
	for _, want := range []string{`"a" has more than 2 API keys`, `an API key of "b" is listed twice`, "has no principal"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from %v", want, err)
		}
	}
	if _, err := auth.NewAPIKeys(nil); err == nil {
		t.Error("no keys at all were accepted")
	}
}
