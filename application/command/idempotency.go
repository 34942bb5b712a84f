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
	// CodeKeyReused means that the key was used before for another request.
	CodeKeyReused = "idempotency_key_reused"
	// CodeKeyInvalid means that the key is empty, too long or not printable.
	CodeKeyInvalid = "invalid_idempotency_key"
)

// MaxIdempotencyKey is the maximum length of a key, in characters.
const MaxIdempotencyKey = 255

// Sender is the caller of a command and its idempotency key.
type Sender struct {
	// Principal is the authenticated caller; empty for an anonymous one. Keys are separate
	// per principal, and the audit trail records it.
	Principal string
	// IdempotencyKey is the client's name for this request. A repeat of the request
	// under the same key changes nothing, and its answer has Replayed set. Empty means
	// no key.
	IdempotencyKey string
}

// hasKey reports whether the command has an idempotency key.
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

// secret is the input of everything derived from the key. The length prefix separates the two
// parts, because otherwise different pairs could give the same text.
func (s Sender) secret() []byte {
	return fmt.Appendf(nil, "%d:%s%s", len(s.Principal), s.Principal, s.IdempotencyKey)
}

// derivedID returns the id of an aggregate that is created under the key. A repeat derives the
// same id, and the create then fails with Conflict (RFC 9562 5.8).
func (s Sender) derivedID(namespace uuid.UUID) uuid.UUID {
	return uuid.NewHash(sha256.New(), namespace, s.secret(), 8)
}

// requestID returns the id of the note about an update under the key.
func (s Sender) requestID() string {
	sum := sha256.Sum256(s.secret())
	return hex.EncodeToString(sum[:])
}

// requestHash distinguishes requests under the same key. It is keyed, because otherwise
// personal data could be guessed from a stored hash. Parts are the name and the fields of the
// command.
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
