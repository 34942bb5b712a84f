package command

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"feedbox/domain/fault"
)

// The codes of faults about idempotency keys.
const (
	// CodeKeyReused: the key came before, with another request.
	CodeKeyReused = "idempotency_key_reused"
	// CodeKeyInvalid: the key is not one.
	CodeKeyInvalid = "invalid_idempotency_key"
)

// MaxIdempotencyKey is the longest key, in characters.
const MaxIdempotencyKey = 255

// Sender is who sends a command, and under which key.
type Sender struct {
	// Principal is the authenticated caller; empty for anybody. It keeps the keys of
	// callers apart and stands in the audit trail.
	Principal string
	// IdempotencyKey is the client's name for this request. A repeat of the request
	// under the same key does nothing and is answered as a replay. Empty: no key.
	IdempotencyKey string
}

// hasKey reports whether the command came under an idempotency key.
func (s Sender) hasKey() bool { return s.IdempotencyKey != "" }

func (s Sender) validate() error {
	key := s.IdempotencyKey
	if key == "" {
		return nil
	}
	if !utf8.ValidString(key) || utf8.RuneCountInString(key) > MaxIdempotencyKey ||
		strings.ContainsFunc(key, unicode.IsControl) || strings.TrimSpace(key) == "" {
		return fault.New(fault.Invalid, CodeKeyInvalid,
			fmt.Sprintf("the idempotency key must be 1 to %d printable characters", MaxIdempotencyKey))
	}
	return nil
}

// secret is what all that is derived from the key is derived with. Its parts
// cannot run into each other.
func (s Sender) secret() []byte {
	return fmt.Appendf(nil, "%d:%s%s", len(s.Principal), s.Principal, s.IdempotencyKey)
}

// derivedID derives the id of an aggregate that is created under the key, so that a
// repeat finds the aggregate by trying to create it again (RFC 9562 5.8).
func (s Sender) derivedID(namespace uuid.UUID) uuid.UUID {
	return uuid.NewHash(sha256.New(), namespace, s.secret(), 8)
}

// requestID derives the id of the note about an update under the key.
func (s Sender) requestID() string {
	sum := sha256.Sum256(s.secret())
	return hex.EncodeToString(sum[:])
}

// requestHash tells requests under the same key apart, without telling what is in
// them: the key is needed to try values out. Parts are the command's name and fields.
func (s Sender) requestHash(parts ...any) (string, error) {
	text, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("hash the request: %w", err)
	}
	mac := hmac.New(sha256.New, s.secret())
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

func errKeyReused() error {
	return fault.New(fault.Invalid, CodeKeyReused, "the idempotency key was used for another request; use a new one")
}
