package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
)

// HeaderAPIKey carries an API key.
const HeaderAPIKey = "x-api-key"

// keysPerPrincipal is how many keys a principal may have at a time: the one
// in use and its successor.
const keysPerPrincipal = 2

// APIKey is a key by its hash. The key itself is known to the caller only; it
// must be random, with at least 128 bits, since it is hashed once.
type APIKey struct {
	// Principal is the caller's name.
	Principal string
	// Write allows changes besides reading.
	Write bool
	// Hash is the SHA-256 hash of the key's bytes.
	Hash [sha256.Size]byte
}

// APIKeys authenticates by the header x-api-key.
type APIKeys struct{ keys []APIKey }

// NewAPIKeys returns an authenticator of the given keys. The error lists
// everything that is wrong with them.
func NewAPIKeys(keys []APIKey) (*APIKeys, error) {
	var faults []error
	if len(keys) == 0 {
		faults = append(faults, errors.New("there is no API key, nobody could call"))
	}
	count := map[string]int{}
	seen := map[[sha256.Size]byte]bool{}
	for _, key := range keys {
		count[key.Principal]++
		if count[key.Principal] == keysPerPrincipal+1 {
			faults = append(faults, fmt.Errorf("%q has more than %d API keys", key.Principal, keysPerPrincipal))
		}
		if key.Principal == "" {
			faults = append(faults, errors.New("an API key has no principal"))
		}
		if seen[key.Hash] {
			faults = append(faults, fmt.Errorf("an API key of %q is listed twice", key.Principal))
		}
		seen[key.Hash] = true
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &APIKeys{keys: append([]APIKey(nil), keys...)}, nil
}

// Authenticate hashes the key that was sent and compares it with all that are
// known, in a time that does not depend on which one matches.
func (a *APIKeys) Authenticate(_ context.Context, r *http.Request) (Principal, error) {
	sent := r.Header.Get(HeaderAPIKey)
	if sent == "" {
		return Principal{}, ErrNoCredential
	}
	hash := sha256.Sum256([]byte(sent))
	found := -1
	for i := range a.keys {
		equal := subtle.ConstantTimeCompare(hash[:], a.keys[i].Hash[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return Principal{}, ErrBadCredential
	}
	key := a.keys[found]
	return Principal{ID: "apikey:" + key.Principal, ReadsAll: true, WritesAll: key.Write}, nil
}

// Challenge names a scheme of our own: none is registered for API keys.
func (a *APIKeys) Challenge() string { return "ApiKey" }
