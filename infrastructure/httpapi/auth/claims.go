package auth

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// claims holds the claims that the verifier does not check itself. See Microsoft identity
// platform, "Access token claims reference", "ID token claims reference" and "Optional
// claims reference"; RFC 9068 §2.2.
type claims struct {
	Subject   string   `json:"sub"`
	ObjectID  string   `json:"oid"`
	Tenant    string   `json:"tid"`
	Expiry    *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`

	Scopes *string         `json:"scp"`   // of a user's token, separated by spaces
	Roles  json.RawMessage `json:"roles"` // of an application, and of a user

	TokenType string `json:"idtyp"`     // app or user; optional
	Client    string `json:"azp"`       // client of the token, version 2
	AppID     string `json:"appid"`     // the same, version 1
	ClientID  string `json:"client_id"` // the same, RFC 9068

	// In ID tokens only.
	Nonce           string `json:"nonce"`
	AccessTokenHash string `json:"at_hash"`
	CodeHash        string `json:"c_hash"`
}

// granted returns the scopes that the token grants:
//
//   - With scp, a user delegated these scopes to an application. The roles of the user grant
//     no more, because the user did not delegate them. With rolesOfUsers the user must have
//     a role of the same name for each.
//   - Without scp, a token that an application got for itself grants its roles.
//   - All other tokens are refused. An ID token, for example, identifies a user but grants
//     nothing to its bearer.
func (c *claims) granted(rolesOfUsers bool) ([]string, error) {
	var roles []string
	malformed := len(c.Roles) > 0 && json.Unmarshal(c.Roles, &roles) != nil
	switch {
	case c.Nonce != "" || c.AccessTokenHash != "" || c.CodeHash != "":
		return nil, ErrBadCredential
	case c.Scopes != nil && !rolesOfUsers:
		return strings.Fields(*c.Scopes), nil
	case malformed:
		return nil, ErrBadCredential
	case c.Scopes != nil:
		return slices.DeleteFunc(strings.Fields(*c.Scopes), func(scope string) bool { return !slices.Contains(roles, scope) }), nil
	case !c.isApplication():
		return nil, ErrBadCredential
	}
	return roles, nil
}

// isApplication reports whether an application got the token for itself. Without idtyp the
// subject must be the application: Entra ID sets sub to its object id, other providers to
// the client id.
func (c *claims) isApplication() bool {
	if c.TokenType != "" {
		return c.TokenType == "app"
	}
	client := cmp.Or(c.Client, c.AppID, c.ClientID)
	return client != "" && c.Subject == cmp.Or(c.ObjectID, client)
}
