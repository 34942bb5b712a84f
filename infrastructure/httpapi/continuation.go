package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// tokenVersion begins every token, so that its form can change.
const tokenVersion = 1

// tokenPurpose separates the keys derived here from other uses of the same
// secret, and from those of other resources, which are named by their plural.
func tokenPurpose(plural string) string { return "feedbox " + plural + " continuation v1" }

// tokenBox seals the store's continuation into a token that clients can
// neither read nor make: AES-256-GCM under keys derived by HKDF-SHA-256. A
// token says where a listing stands, no more: it grants no access.
//
// It is bound to the listing it came from, and opens for no other.
//
// Layout: base64url(version byte | nonce, 12 bytes | sealed continuation).
type tokenBox struct {
	ciphers []cipher.AEAD // the first seals, all open
}

// newTokenBox takes the configured keys, or makes a random one, for the listings of one
// resource.
func newTokenBox(keys [][]byte, plural string) (*tokenBox, error) {
	if len(keys) == 0 {
		random := make([]byte, minTokenKey)
		_, _ = rand.Read(random) // never fails: crypto/rand ends the program instead
		keys = [][]byte{random}
	}
	box := &tokenBox{}
	for _, key := range keys {
		derived, err := hkdf.Key(sha256.New, key, nil, tokenPurpose(plural), 32)
		if err != nil {
			return nil, fmt.Errorf("derive token key: %w", err)
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, fmt.Errorf("token cipher: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("token cipher: %w", err)
		}
		box.ciphers = append(box.ciphers, aead)
	}
	return box, nil
}

func (b *tokenBox) seal(continuation, listing string) string {
	sealed := b.ciphers[0].Seal([]byte{tokenVersion}, nil, []byte(continuation), bound(listing))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// bound is the additional data that a token is authenticated with.
func bound(listing string) []byte { return append([]byte{tokenVersion}, listing...) }

// open returns the continuation, or a 400 for a token that is broken, was
// made with another key, for another listing, or by anybody else.
func (b *tokenBox) open(token, listing string) (string, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err == nil && len(sealed) > 1 && sealed[0] == tokenVersion {
		for _, aead := range b.ciphers {
			if continuation, err := aead.Open(nil, nil, sealed[1:], bound(listing)); err == nil {
				return string(continuation), nil
			}
		}
	}
	return "", badRequest("invalid_continuation", "the continuation token does not belong to this listing, or has expired: begin again")
}
