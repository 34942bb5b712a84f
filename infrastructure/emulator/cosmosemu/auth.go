package cosmosemu

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"hash"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// authenticator checks the authorization header: a signature with the account
// key, a resource token (see resource_token.go), or an AAD token.
//
// The key signs lower(verb) \n lower(resource type) \n resource link \n
// lower(date) \n \n with HMAC-SHA256 (shared_key_credential.go of azcosmos).
type authenticator struct {
	account *account
	macs    sync.Pool // of *macState, because making an HMAC allocates
	last    atomic.Pointer[signed]
}

// signed is a valid header with a key signature, and everything that it signs. The last one of a
// feed is kept, because the requests to a feed within a second are signed equally. Those to an
// item seldom are.
type signed struct{ header, method, resource, link, date string }

type macState struct {
	mac  hash.Hash
	text []byte
	sum  [sha256.Size]byte
}

func (a *authenticator) init(of *account) {
	a.account = of
	a.macs.New = func() any { return &macState{mac: hmac.New(sha256.New, of.key), text: make([]byte, 0, 256)} }
}

// check returns nil if the request is authorised.
func (a *authenticator) check(r *http.Request, rt *route) *wireError {
	header := first(r.Header, headerAuthorization)
	if header == "" {
		return unauthorized("Required header 'authorization' is missing")
	}
	date := first(r.Header, headerDate)
	if date == "" {
		date = first(r.Header, headerHTTPDate)
	}
	now := signed{header, r.Method, rt.resource, rt.link, date}
	if last := a.last.Load(); last != nil && *last == now {
		return nil
	}
	kind, signature, ok := parseAuthorization(header)
	switch {
	case !ok:
		return unauthorized("The authorization header is not of the form type=...&ver=1.0&sig=...")
	case kind == "aad":
		return checkAADToken(signature)
	case kind == "resource":
		return a.account.checkResourceToken(r, rt, signature)
	case kind != "master":
		return unauthorized("Authorization type " + kind + " is not supported: use the account key, a resource token or an AAD token")
	}
	switch {
	case a.signed(signature, r.Method, rt.resource, rt.link, date):
		if rt.id == "" {
			kept := now // otherwise each request would allocate one
			a.last.Store(&kept)
		}
	case rt.op == OpDeletePartition && a.signed(signature, r.Method, "colls", rt.link, date): // the .NET SDK signs this operation so
	default:
		return unauthorized("The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built as per the protocol. " +
			"Signed should have been: '" + strings.ToLower(r.Method) + "\\n" + rt.resource + "\\n" + rt.link + "\\n" + strings.ToLower(date) + "\\n\\n'")
	}
	return nil
}

func unauthorized(message string) *wireError {
	return &wireError{Status: http.StatusUnauthorized, Message: message}
}

func (a *authenticator) signed(signature, method, resource, link, date string) bool {
	m, _ := a.macs.Get().(*macState)
	defer a.macs.Put(m)
	m.text = appendLower(m.text[:0], method)
	m.text = append(append(append(m.text, '\n'), resource...), '\n')
	m.text = append(append(m.text, link...), '\n')
	m.text = append(appendLower(m.text, date), "\n\n"...)
	m.mac.Reset()
	_, _ = m.mac.Write(m.text) // a hash never fails
	want := m.mac.Sum(m.sum[:0])
	var decoded [sha256.Size + 4]byte
	if base64.StdEncoding.DecodedLen(len(signature)) > len(decoded) {
		return false
	}
	n, err := base64.StdEncoding.Decode(decoded[:], []byte(signature))
	return err == nil && hmac.Equal(decoded[:n], want)
}

func appendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// parseAuthorization splits type=...&ver=...&sig=.... SDKs percent-encode the header with
// a key signature, but not with an AAD token.
func parseAuthorization(header string) (kind, signature string, ok bool) {
	if strings.Contains(header, "%") {
		decoded, err := url.PathUnescape(header)
		if err != nil {
			return "", "", false
		}
		header = decoded
	}
	for part := range strings.SplitSeq(header, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "type":
			kind = value
		case "sig":
			signature = value
		}
	}
	return kind, signature, kind != "" && signature != ""
}

// checkAADToken accepts any well-formed JSON web token. It does not check the signature,
// audience and times, because an emulator has no issuer to trust and its clock can be
// moved.
func checkAADToken(token string) *wireError {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return unauthorized("The AAD token is not a JSON web token: it needs three parts")
	}
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
		if err != nil || !json.Valid(text) {
			return unauthorized("The AAD token is not a JSON web token: a part is not base64url of JSON")
		}
	}
	return nil
}
