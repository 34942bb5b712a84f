package cosmosemu

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// checkAADToken accepts any well-formed JSON web token. It does not check the signature,
// audience and times, because an emulator has no issuer to trust and its clock can be
// moved.
func checkAADToken(token string) *wireError {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return unauthorized("The AAD token is not a JSON web token: it needs three parts")
	}
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
		if err != nil || !json.Valid(text) {
			return unauthorized("The AAD token is not a JSON web token: a part is not base64url of JSON")
		}
	}
	return nil
}
