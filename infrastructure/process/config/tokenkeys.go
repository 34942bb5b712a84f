package config

import (
	"encoding/base64"
	"fmt"
	"strings"
)

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
