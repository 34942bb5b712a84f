package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Principal returns the object id of an identity, read from a token for scope. It returns a
// placeholder if there is no identity or no token.
func Principal(ctx context.Context, identity azcore.TokenCredential, scope string) string {
	const unknown = "<object-id>"
	if identity == nil {
		return unknown
	}
	token, err := identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return unknown
	}
	return objectID(token.Token, unknown)
}

// objectID reads the claim oid of a token (Microsoft identity platform, access token claims).
// The signature is not checked, because the id is only shown.
func objectID(token, otherwise string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return otherwise
	}
	var claims struct {
		ObjectID string `json:"oid"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.ObjectID == "" {
		return otherwise
	}
	return claims.ObjectID
}
