package config

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// APIKey is one entry of FEEDBOX_AUTH_API_KEYS or FEEDBOX_CONSOLE_API_KEYS.
type APIKey struct {
	Principal string
	Write     bool
	Audit     bool // reads in audit trails who the other callers are
	Hash      [sha256.Size]byte
}

// APIKeys is a list of API keys by their hashes, written as
// name:read:HASH,name:write:HASH where HASH is the SHA-256 of the key in
// hexadecimal. The suffix +audit of a scope also allows to read in audit trails who the other
// callers are. A name may occur twice, with the key in use and its successor.
// Hashes are masked when printed.
type APIKeys struct{ list []APIKey }

// List returns the keys.
func (k APIKeys) List() []APIKey { return append([]APIKey(nil), k.list...) }

// String names the principals and masks the hashes.
func (k APIKeys) String() string {
	parts := make([]string, len(k.list))
	for i, key := range k.list {
		parts[i] = key.Principal + ":" + key.scope() + ":" + masked
	}
	return strings.Join(parts, ",")
}

// MarshalText is String.
func (k APIKeys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the list. Errors count entries and do not quote them.
func (k *APIKeys) UnmarshalText(text []byte) error {
	k.list = nil
	count := map[string]int{}
	for i, entry := range strings.Split(string(text), ",") {
		parts := strings.Split(strings.TrimSpace(entry), ":")
		if len(parts) != 3 {
			return fmt.Errorf("entry %d is not name:scope:hash", i+1)
		}
		scope, audits := strings.CutSuffix(parts[1], "+audit")
		key := APIKey{Principal: parts[0], Write: scope == "write", Audit: audits}
		if problem, _ := checkName(key.Principal); problem != "" {
			return fmt.Errorf("entry %d has no valid name", i+1)
		}
		if key.scope() != parts[1] {
			return fmt.Errorf("entry %d has neither the scope read nor write, optionally with +audit", i+1)
		}
		hash, err := hex.DecodeString(parts[2])
		if err != nil || len(hash) != sha256.Size {
			return fmt.Errorf("entry %d has no SHA-256 hash of 64 hexadecimal digits", i+1)
		}
		copy(key.Hash[:], hash)
		if count[key.Principal]++; count[key.Principal] > 2 {
			return fmt.Errorf("entry %d is the third key of its name; two may be active", i+1)
		}
		k.list = append(k.list, key)
	}
	return nil
}

func (k APIKey) scope() string {
	scope := "read"
	if k.Write {
		scope = "write"
	}
	if k.Audit {
		scope += "+audit"
	}
	return scope
}

// Format masks the hashes for every verb.
func (k APIKeys) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// minTokenKey is the least length of a decoded token key.
const minTokenKey = 32

// TokenKeys protect continuation tokens: base64, separated by commas. The
// first seals, all open, so that a key can be replaced without breaking
// listings under way. They are masked when printed.
type TokenKeys struct{ keys [][]byte }

// List returns the keys, nil if none is set.
func (k TokenKeys) List() [][]byte { return append([][]byte(nil), k.keys...) }

// String masks the keys.
func (k TokenKeys) String() string {
	return strings.TrimSuffix(strings.Repeat(masked+",", len(k.keys)), ",")
}

// Format masks the keys for every verb.
func (k TokenKeys) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// MarshalText is String.
func (k TokenKeys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the list. Errors count keys and do not quote them.
func (k *TokenKeys) UnmarshalText(text []byte) error {
	k.keys = nil
	for i, part := range strings.Split(string(text), ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("key %d is not base64", i+1)
		}
		if len(key) < minTokenKey {
			return fmt.Errorf("key %d has %d bytes, at least %d are needed", i+1, len(key), minTokenKey)
		}
		k.keys = append(k.keys, key)
	}
	return nil
}
