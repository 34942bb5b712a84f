package busemu

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// A token of Entra ID (JWT, RFC 7519) is accepted if it is well-formed and not expired. It has
// all rights. Its signature, issuer and audience are not checked, because an emulator has no
// issuer to trust.

// unlimitedToken is the validity of a token without an expiry.
const unlimitedToken = time.Hour

const errJWT tokenError = "MalformedToken: The token is not a JSON web token: three parts are needed, the first two base64url of JSON objects."

func readJWT(token string, now time.Time) (*sasToken, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errJWT
	}
	var header struct {
		Alg string `json:"alg"`
	}
	var claims struct {
		Expiry *float64 `json:"exp"`
	}
	for part, into := range map[string]any{parts[0]: &header, parts[1]: &claims} {
		text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
		if err != nil || json.Unmarshal(text, into) != nil {
			return nil, errJWT
		}
	}
	if header.Alg == "" {
		return nil, errJWT
	}
	t := &sasToken{rights: allRights, expires: now.Add(unlimitedToken)}
	if e := claims.Expiry; e != nil {
		t.expires = time.Unix(int64(max(0, min(*e, 1<<40))), 0)
	}
	return t, t.live(now)
}

// live returns an error if the token has expired.
func (t *sasToken) live(now time.Time) error {
	if now.Before(t.expires) {
		return nil
	}
	return malformed("ExpiredToken: The token is expired. Expiration time: '%s'.", t.expires.UTC().Format(time.RFC3339))
}
