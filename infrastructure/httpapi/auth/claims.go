package auth

import (
	"cmp"
	"encoding/json"
	"strings"
)

// claims are what we read besides what the verifier checks. Microsoft identity
// platform, "Access token claims reference", "ID token claims reference" and
// "Optional claims reference"; RFC 9068 §2.2.
type claims struct {
	Subject   string   `json:"sub"`
	ObjectID  string   `json:"oid"`
	Tenant    string   `json:"tid"`
	Expiry    *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`

	Scopes *string         `json:"scp"`   // of a user's token, separated by spaces
	Roles  json.RawMessage `json:"roles"` // of an application, and of a user

	TokenType string `json:"idtyp"`     // app or user; optional
	Client    string `json:"azp"`       // who got the access token, version 2
	AppID     string `json:"appid"`     // the same, version 1
	ClientID  string `json:"client_id"` // the same, RFC 9068

	// Of ID tokens only.
	Nonce           string `json:"nonce"`
	AccessTokenHash string `json:"at_hash"`
	CodeHash        string `json:"c_hash"`
}

// granted returns what the token allows. With scp a user has let an application act for
// it, within these scopes and no further: what the user itself might do by its roles
// does not count. Roles count for an application that acts for itself. What is
// neither of the two, such as an ID token, which says who a user is and nothing about
// what its bearer may do, is no credential here.
func (c *claims) granted() ([]string, error) {
	switch {
	case c.Nonce != "" || c.AccessTokenHash != "" || c.CodeHash != "":
		return nil, ErrBadCredential
	case c.Scopes != nil:
		return strings.Fields(*c.Scopes), nil
	case !c.isApplication():
		return nil, ErrBadCredential
	}
	var roles []string
	if len(c.Roles) > 0 && json.Unmarshal(c.Roles, &roles) != nil {
		return nil, ErrBadCredential
	}
	return roles, nil
}

// isApplication tells the token that an application got for itself. Where idtyp does
// not say so, its subject must be the application: Entra ID gives it the object id as
// sub, others the client's id.
func (c *claims) isApplication() bool {
	if c.TokenType != "" {
		return c.TokenType == "app"
	}
	client := cmp.Or(c.Client, c.AppID, c.ClientID)
	return client != "" && c.Subject == cmp.Or(c.ObjectID, client)
}
