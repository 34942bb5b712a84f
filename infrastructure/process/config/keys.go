package config

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
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

// Auth configures the authentication of callers. It has no API keys, because the operators
// of the page are a separate list from the callers of the API.
type Auth struct {
	Mode      string   `env:"AUTH" envDefault:"none" oneof:"none|apikey|entra" doc:"who may call the API, and open the operations page: none (everybody, on loopback addresses only), apikey or entra"`
	Insecure  bool     `env:"AUTH_INSECURE" envDefault:"false" doc:"allow FEEDBOX_AUTH=none on an address that others can reach"`
	Issuer    Address  `env:"AUTH_ISSUER" check:"anonymous" doc:"issuer of the tokens of mode entra, for example https://login.microsoftonline.com/TENANT/v2.0"`
	Audiences []string `env:"AUTH_AUDIENCE" doc:"audiences of the tokens of mode entra, separated by commas: application id URI or client id"`
}

// checkAuth checks c for a process that listens on the address listen, which variable sets,
// and has the API keys of the variable list.
func checkAuth(report *report, c Auth, variable, listen, list string, keys APIKeys) {
	const mode = "FEEDBOX_AUTH"
	switch c.Mode {
	case "none":
		if !IsLoopback(listen) && !c.Insecure && !report.faulty(variable) {
			report.add(mode, "is none, but "+variable+" is an address that others can reach",
				"set FEEDBOX_AUTH to apikey or entra, or FEEDBOX_AUTH_INSECURE=true if another guard stands before it")
		}
	case "apikey":
		if len(keys.list) == 0 && !report.faulty(list) {
			report.add(list, "is not set", "FEEDBOX_AUTH is apikey, so there must be a key")
		}
	case "entra":
		checkEntra(report, c)
	}
	if c.Mode != "apikey" && len(keys.list) > 0 {
		report.add(list, "is set, but FEEDBOX_AUTH is "+c.Mode, "set FEEDBOX_AUTH=apikey or remove the keys")
	}
	if c.Mode != "entra" && (c.Issuer != "" || len(c.Audiences) > 0) {
		report.add(mode, "is "+c.Mode+", but an issuer or audience is set", "set FEEDBOX_AUTH=entra or remove them")
	}
}

func checkEntra(report *report, c Auth) {
	u, err := url.Parse(string(c.Issuer))
	switch {
	case c.Issuer == "":
		report.add("FEEDBOX_AUTH_ISSUER", "is not set", "FEEDBOX_AUTH is entra, so the issuer must be known")
	case err != nil || u.Host == "" || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http"):
		report.add("FEEDBOX_AUTH_ISSUER", "is not a URL", "write for example https://login.microsoftonline.com/TENANT/v2.0")
	case u.Scheme == "http" && !IsLoopback(u.Host) && !IsLoopback(u.Host+":80"):
		report.add("FEEDBOX_AUTH_ISSUER", "is http", "signing keys must come over https")
	}
	if len(c.Audiences) == 0 || strings.TrimSpace(strings.Join(c.Audiences, "")) == "" {
		report.add("FEEDBOX_AUTH_AUDIENCE", "is not set", "FEEDBOX_AUTH is entra; without an audience any token of the issuer would do")
	}
}
