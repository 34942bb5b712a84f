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

// keysPerPrincipal allows a principal two keys: the current one and its successor, so that
// keys can be rotated without downtime.
const keysPerPrincipal = 2

// APIKey is the hash of a key; only the caller has the key itself. A key must be random,
// with at least 128 bits, because the hash is a single round of SHA-256.
type APIKey struct {
	// Principal is the caller's name.
	Principal string
	// Write allows changes besides reading.
	Write bool
	// Audit allows to read in audit trails who the other callers are.
	Audit bool
	// Hash is the SHA-256 hash of the key's bytes.
	Hash [sha256.Size]byte
}

// APIKeys authenticates by the header x-api-key.
type APIKeys struct{ keys []APIKey }

// NewAPIKeys returns an authenticator of the given keys. The error lists all invalid keys.
func NewAPIKeys(keys []APIKey) (*APIKeys, error) {
	var faults []error
	if len(keys) == 0 {
		faults = append(faults, errors.New("no API key is configured, so all calls would be refused"))
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

// Authenticate hashes the key of the request and compares it with all configured keys in
// constant time.
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
	return Principal{ID: "apikey:" + key.Principal, ReadsAll: true, WritesAll: key.Write, AuditsAll: key.Audit}, nil
}

// Challenge returns ApiKey, a private scheme, because none is registered for API keys.
func (a *APIKeys) Challenge() string { return "ApiKey" }
