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

// tokenVersion is the first byte of every token, so that the format can change.
const tokenVersion = 1

// tokenPurpose returns the HKDF info, which separates the derived keys from other uses of
// the same secret and from the keys of other resources.
func tokenPurpose(plural string) string { return "feedbox " + plural + " continuation v1" }

// tokenBox seals the store's continuation into a token that clients can neither read nor
// forge: AES-256-GCM with keys derived by HKDF-SHA-256. A token holds a position in a
// listing; it grants no access. It is bound to its listing and does not open for another.
//
// Layout: base64url(version byte | nonce, 12 bytes | sealed continuation).
type tokenBox struct {
	ciphers []cipher.AEAD // the first seals, all open
}

// keysOrRandom returns the configured keys, or a random one of this process.
func keysOrRandom(keys [][]byte) [][]byte {
	if len(keys) > 0 {
		return keys
	}
	random := make([]byte, minTokenKey)
	_, _ = rand.Read(random) // crypto/rand never returns an error
	return [][]byte{random}
}

// newTokenBox returns the box for the listings of one resource.
func newTokenBox(keys [][]byte, plural string) (*tokenBox, error) {
	box := &tokenBox{}
	for _, key := range keysOrRandom(keys) {
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

// bound returns the additional authenticated data of a token.
func bound(listing string) []byte { return append([]byte{tokenVersion}, listing...) }

// open returns the continuation, or a 400 for a token that is damaged, forged, of another
// listing, or sealed with an unknown key.
func (b *tokenBox) open(token, listing string) (string, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err == nil && len(sealed) > 1 && sealed[0] == tokenVersion {
		for _, aead := range b.ciphers {
			if continuation, err := aead.Open(nil, nil, sealed[1:], bound(listing)); err == nil {
				return string(continuation), nil
			}
		}
	}
	return "", badRequest("invalid_continuation", "the continuation token does not belong to this listing, or has expired: start again without one")
}
