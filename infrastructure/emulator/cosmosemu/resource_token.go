package cosmosemu

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// A resource token is what a permission gives its user instead of the account key:
// "type=resource&ver=1.0&sig=<signature>;<grant>;". The grant is ours, the form the
// service's. A token is good until it expires, also if its permission is changed.

// How long a token is good, in seconds. Source: REST reference, permissions.
const (
	tokenSeconds    = 3600
	minTokenSeconds = 10
	maxTokenSeconds = 24 * 3600
)

// grant is what a token allows.
type grant struct {
	Container string          `json:"c"` // resource id
	Item      string          `json:"i,omitempty"`
	Key       json.RawMessage `json:"k,omitempty"` // partition key, as in its header
	Write     bool            `json:"w,omitempty"`
	Expires   int64           `json:"e"` // Unix seconds
}

// permittedResource resolves the link of a permission to the container it names.
func (x *request) permittedResource(db *store.Database, p *store.Permission) (*grant, error) {
	parts := strings.Split(strings.Trim(p.Resource, "/"), "/")
	if len(parts) != 4 && len(parts) != 6 || parts[0] != "dbs" || parts[2] != "colls" || len(parts) == 6 && parts[4] != "docs" {
		return nil, refuse(http.StatusBadRequest, "The resource %q of a permission is not supported: it must be dbs/{db}/colls/{coll} or an item of it", p.Resource)
	}
	rt := route{db: parts[1], coll: parts[3], link: strings.Join(parts, "/")}
	if len(parts) == 6 {
		rt.id = parts[5]
	}
	x.srv.resolve(&rt)
	c, err := x.srv.store.Container(db, rt.coll)
	if rt.db != db.ID || err != nil {
		return nil, refuse(http.StatusNotFound, "The resource %q of a permission is not there, or not in database %q. "+notFound, p.Resource, db.ID)
	}
	if p.Key != nil {
		if _, err := epk.ParseHeader(string(p.Key)); err != nil {
			return nil, refuse(http.StatusBadRequest, "resourcePartitionKey: %v", err)
		}
	}
	return &grant{Container: c.RID, Item: rt.id, Key: p.Key, Write: p.Mode == "All"}, nil
}

// issueToken makes a token for a permission. One whose container is gone gives nothing.
func (x *request) issueToken(db *store.Database, p *store.Permission) (string, error) {
	seconds := tokenSeconds
	if text := first(x.header, headerExpirySeconds); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < minTokenSeconds || n > maxTokenSeconds {
			return "", refuse(http.StatusBadRequest, "x-ms-documentdb-expiry-seconds is %q: it must be a number from %d to %d", text, minTokenSeconds, maxTokenSeconds)
		}
		seconds = n
	}
	g, err := x.permittedResource(db, p)
	if err != nil {
		g = &grant{}
	}
	g.Expires = x.srv.now().Add(time.Duration(seconds) * time.Second).Unix()
	text, err := json.Marshal(g)
	if err != nil {
		return "", fmt.Errorf("encode token: %w", err)
	}
	encoded := base64.RawURLEncoding.EncodeToString(text)
	return "type=resource&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(x.srv.signGrant(encoded)) + ";" + encoded + ";", nil
}

func (s *Server) signGrant(encoded string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("resource token\n" + encoded)) // never fails
	return mac.Sum(nil)
}

// checkResourceToken returns nil if a resource token allows the request.
func (s *Server) checkResourceToken(r *http.Request, rt *route, token string) *wireError {
	signature, rest, _ := strings.Cut(token, ";")
	encoded := strings.TrimSuffix(rest, ";")
	sum, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(sum, s.signGrant(encoded)) {
		return unauthorized("The resource token is not one of this account")
	}
	var g grant
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil {
		return unauthorized("The resource token cannot be read")
	}
	if s.now().Unix() >= g.Expires {
		return refuse(http.StatusForbidden, "The authorization token is not valid at the current time: it has expired. Read the permission for another one")
	}
	if !g.allows(s, r, rt) {
		return refuse(http.StatusForbidden, "Insufficient permissions provided in the authorization header for the corresponding request")
	}
	return nil
}

func (g *grant) allows(s *Server, r *http.Request, rt *route) bool {
	if rt.op == OpReadAccount {
		return true
	}
	db, err := s.store.Database(rt.db)
	if err != nil {
		return false
	}
	c, err := s.store.Container(db, rt.coll)
	if err != nil || c.RID != g.Container {
		return false
	}
	switch rt.op {
	case OpReadContainer, OpReadPartitionKeyRanges, OpQueryPlan: // to find the way
		return true
	case OpReadItem, OpListItems, OpQueryItems, OpReadChangeFeed:
	case OpCreateItem, OpUpsertItem, OpReplaceItem, OpPatchItem, OpDeleteItem, OpBatch, OpDeletePartition:
		if !g.Write {
			return false
		}
	default:
		return false
	}
	return (g.Item == "" || g.Item == rt.id) && (g.Key == nil || g.allowsKey(r, rt))
}

// allowsKey holds if the header has the key that the token is for, and decides: the
// operations of a bulk have keys of their own.
func (g *grant) allowsKey(r *http.Request, rt *route) bool {
	if rt.op == OpBatch && !isTrue(r.Header, headerBatchAtomic) {
		return false
	}
	return sameKey(string(g.Key), first(r.Header, headerPartitionKey))
}

// sameKey tells whether two partition keys, as in their header, are the same.
func sameKey(a, b string) bool {
	x, err1 := epk.ParseHeader(a)
	y, err2 := epk.ParseHeader(b)
	return err1 == nil && err2 == nil && string(x.Encode(nil)) == string(y.Encode(nil))
}
