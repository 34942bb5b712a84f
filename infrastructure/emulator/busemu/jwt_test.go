package busemu

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}

func expiring(in time.Duration) string {
	return jwt(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(in).Unix()))
}

// TestJWT: well-formed tokens of Entra ID are accepted until they expire.
func TestJWT(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for token, want := range map[string]bool{
		expiring(time.Hour): true, jwt(`{}`): true, jwt(`{"exp":1e300}`): true,
		expiring(-time.Hour): false, jwt(`{"exp":"soon"}`): false, jwt(`[]`): false, jwt(`{`): false,
		"": false, "..": false, "a.b.c": false, "e30.e30.x": false, jwt(`{}`) + ".x": false,
	} {
		got, err := readJWT(token, now)
		if (err == nil) != want {
			t.Errorf("%q: %v", token, err)
		}
		if err == nil && (got.rights != allRights || !got.expires.After(now)) {
			t.Errorf("%q: %+v", token, got)
		}
	}
}

// credential returns one token.
type credential string

func (c credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(c), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestTokenCredential: the SDK authenticates with a credential at $cbs and at the admin API;
// both refuse an expired token.
func TestTokenCredential(t *testing.T) {
	t.Parallel()
	srv := startT(t, queues("q"))
	for name, c := range map[string]struct {
		token string
		ok    bool
	}{"valid": {expiring(time.Hour), true}, "expired": {expiring(-time.Minute), false}} {
		o := srv.ClientOptions()
		o.RetryOptions.MaxRetries = -1
		client := must(azservicebus.NewClient("127.0.0.1", credential(c.token), o))(t)
		err := must(client.NewSender("q", nil))(t).SendMessage(t.Context(), &azservicebus.Message{}, nil)
		if (err == nil) != c.ok {
			t.Errorf("%s: send: %v", name, err)
		}
		check(t, client.Close(t.Context()))
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, srv.AdminURL()+"/q?api-version=2021-05", nil))(t)
		req.Header.Set("Authorization", "Bearer "+c.token)
		resp := must(http.DefaultClient.Do(req))(t)
		_ = resp.Body.Close()
		if (resp.StatusCode == http.StatusOK) != c.ok {
			t.Errorf("%s: admin API: %s", name, resp.Status)
		}
	}
}

// FuzzJWT: a token never makes the reader panic, and an expired one is refused.
func FuzzJWT(f *testing.F) {
	f.Add(expiring(time.Hour))
	f.Add(jwt(`{"exp":1e400}`))
	now := time.Now()
	f.Fuzz(func(t *testing.T, token string) {
		if got, err := readJWT(token, now); err == nil && !got.expires.After(now) {
			t.Errorf("taken until %v", got.expires)
		}
	})
}
