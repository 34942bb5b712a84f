package busemu

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// SASKey is a shared access key. Zero Rights mean all rights.
type SASKey struct {
	Name   string
	Key    string
	Rights Rights
}

// The key in the official emulator's connection strings.
const (
	DefaultKeyName = "RootManageSharedAccessKey"
	DefaultKey     = "SAS_KEY_VALUE"
)

func malformed(format string, args ...any) error { return tokenError(fmt.Sprintf(format, args...)) }

// keyring has the keys of a namespace. Immutable.
type keyring []SASKey

func (k keyring) find(name string) (SASKey, bool) {
	for _, key := range k {
		if key.Name == name {
			return key, true
		}
	}
	return SASKey{}, false
}

// check compares a key's value.
func (k keyring) check(name string, value []byte) (SASKey, bool) {
	key, ok := k.find(name)
	if !ok || subtle.ConstantTimeCompare([]byte(key.Key), value) != 1 {
		return SASKey{}, false
	}
	return key, true
}

// sasToken is a verified shared access signature.
type sasToken struct {
	resource string // as it was signed, unescaped
	rights   Rights
	expires  time.Time
}

// covers reports whether the token's resource is the path or a parent of it.
func (t *sasToken) covers(path string) bool {
	resource := t.resource
	if !strings.Contains(resource, "://") { // host and path without a scheme
		resource = "sb://" + resource
	}
	own := audiencePath(resource)
	return own == "" || path == own || strings.HasPrefix(path, own+"/")
}

// tokenError refuses a token with the service's text, which is sent to the client.
type tokenError string

func (e tokenError) Error() string { return string(e) }

const errSignature tokenError = "InvalidSignature: The token has an invalid signature."

// sasScheme is the prefix of a token.
const sasScheme = "SharedAccessSignature "

// verify checks a token of the form "SharedAccessSignature sr=…&sig=…&se=…&skn=…". The
// signature is HMAC-SHA256 over the resource as written in the token, a newline and the
// expiry.
//
// Source: azservicebus internal/sas.
func (k keyring) verify(token string, now time.Time) (*sasToken, error) {
	rest, ok := strings.CutPrefix(token, sasScheme)
	if !ok {
		return nil, malformed("MalformedToken: The token is not a SharedAccessSignature.")
	}
	fields := make(map[string]string, 4)
	for part := range strings.SplitSeq(rest, "&") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, malformed("MalformedToken: The token is not a list of names and values.")
		}
		fields[name] = value
	}
	for _, name := range []string{"sr", "sig", "se", "skn"} {
		if fields[name] == "" {
			return nil, malformed("MalformedToken: The token has no '%s'.", name)
		}
	}
	name, err := url.QueryUnescape(fields["skn"])
	if err != nil {
		return nil, errSignature
	}
	key, ok := k.find(name)
	if !ok {
		return nil, errSignature
	}
	signature, err := url.QueryUnescape(fields["sig"])
	if err != nil {
		return nil, errSignature
	}
	mac := hmac.New(sha256.New, []byte(key.Key))
	mac.Write([]byte(fields["sr"] + "\n" + fields["se"]))
	if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); !hmac.Equal([]byte(want), []byte(signature)) {
		return nil, errSignature
	}
	seconds, err := strconv.ParseInt(fields["se"], 10, 64)
	if err != nil {
		return nil, malformed("MalformedToken: The token's expiry is not a number.")
	}
	t := &sasToken{rights: key.Rights, expires: time.Unix(seconds, 0)}
	if t.resource, err = url.QueryUnescape(fields["sr"]); err != nil {
		return nil, malformed("MalformedToken: The token's resource is not escaped properly.")
	}
	return t, t.live(now)
}
