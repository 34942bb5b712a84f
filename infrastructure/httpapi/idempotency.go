package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"feedbox/application/command"
	"feedbox/infrastructure/httpapi/auth"
)

// senderOf returns the principal and the idempotency key of a change.
func senderOf(r *http.Request) (command.Sender, error) {
	value, err := single(r.Header, headerIdempotencyKey)
	if err != nil {
		return command.Sender{}, err
	}
	sender := command.Sender{Principal: stateOf(r.Context()).principal.ID}
	if sender.Principal == auth.Anonymous {
		sender.Principal = ""
	}
	if _, given := r.Header[headerIdempotencyKey]; !given {
		return sender, nil
	}
	key, ok := idempotencyKey(value)
	if !ok {
		return sender, badRequest(command.CodeKeyInvalid, fmt.Sprintf("%s must be a text of 1 to %d visible ASCII characters, with or without double quotes around it", headerIdempotencyKey, command.MaxIdempotencyKey))
	}
	sender.IdempotencyKey = key
	return sender, nil
}

// idempotencyKey reads the header. In the IETF draft (draft-ietf-httpapi-idempotency-key-
// header) it is a quoted string of RFC 8941 §3.3.3, but most clients send it without
// quotes. Both forms are the same key.
func idempotencyKey(value string) (string, bool) {
	value = strings.Trim(value, " \t")
	key, ok := value, !strings.Contains(value, `"`) && !strings.ContainsFunc(value, func(c rune) bool { return c < 0x20 || c > 0x7e })
	if strings.HasPrefix(value, `"`) {
		key, ok = unquote(value)
	}
	return key, ok && strings.TrimSpace(key) != "" && len(key) <= command.MaxIdempotencyKey
}

// unquote reads a string of RFC 8941 §3.3.3.
func unquote(value string) (string, bool) {
	var key strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			return key.String(), i == len(value)-1
		case c == '\\':
			if i++; i == len(value) || value[i] != '"' && value[i] != '\\' {
				return "", false
			}
			key.WriteByte(value[i])
		case c < 0x20 || c > 0x7e:
			return "", false
		default:
			key.WriteByte(c)
		}
	}
	return "", false
}

func setReplayed(h http.Header, replayed bool) {
	if replayed {
		h.Set(headerReplayed, "true")
	}
}
