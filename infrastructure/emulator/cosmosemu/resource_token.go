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

// A resource token authorises a user instead of the account key. A permission issues it:
// "type=resource&ver=1.0&sig=<signature>;<grant>;". The form is the service's, the content
// of the grant is ours. A token is valid until it expires, even if its permission is
// changed or deleted.

// The lifetime of a token in seconds. Source: REST reference, permissions.
const (
	tokenSeconds    = 3600
	minTokenSeconds = 10
	maxTokenSeconds = 24 * 3600
)

// grant is the content of a token: the access that it allows.
type grant struct {
	Container string          `json:"c"` // resource id
	Item      string          `json:"i,omitempty"`
	Key       json.RawMessage `json:"k,omitempty"` // partition key, as in its header
	Write     bool            `json:"w,omitempty"`
	Expires   int64           `json:"e"` // Unix seconds
}

// permittedResource resolves the link of a permission to its container.
func (a *account) permittedResource(db *store.Database, p *store.Permission) (*grant, error) {
	parts := strings.Split(strings.Trim(p.Resource, "/"), "/")
	if len(parts) != 4 && len(parts) != 6 || parts[0] != "dbs" || parts[2] != "colls" || len(parts) == 6 && parts[4] != "docs" {
		return nil, refuse(http.StatusBadRequest, "The resource %q of a permission is not supported: it must be dbs/{db}/colls/{coll} or an item of it", p.Resource)
	}
	rt := route{db: parts[1], coll: parts[3], link: strings.Join(parts, "/")}
	if len(parts) == 6 {
		rt.id = parts[5]
	}
	a.resolve(&rt)
	c, err := a.store.Container(db, rt.coll)
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

// issueToken creates a token for a permission. If the container has been deleted, the
// token allows nothing.
func (a *account) issueToken(h http.Header, db *store.Database, p *store.Permission) (string, error) {
	seconds := tokenSeconds
	if text := first(h, headerExpirySeconds); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < minTokenSeconds || n > maxTokenSeconds {
			return "", refuse(http.StatusBadRequest, "x-ms-documentdb-expiry-seconds is %q: it must be a number from %d to %d", text, minTokenSeconds, maxTokenSeconds)
		}
		seconds = n
	}
	g, err := a.permittedResource(db, p)
	if err != nil {
		g = &grant{}
	}
	g.Expires = a.now().Add(time.Duration(seconds) * time.Second).Unix()
	text, err := json.Marshal(g)
	if err != nil {
		return "", fmt.Errorf("encode token: %w", err)
	}
	encoded := base64.RawURLEncoding.EncodeToString(text)
	return "type=resource&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(a.signGrant(encoded)) + ";" + encoded + ";", nil
}

func (a *account) signGrant(encoded string) []byte {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte("resource token\n" + encoded)) // never fails
	return mac.Sum(nil)
}

// checkResourceToken returns nil if a resource token allows the request.
func (a *account) checkResourceToken(r *http.Request, rt *route, token string) *wireError {
	signature, rest, _ := strings.Cut(token, ";")
	encoded := strings.TrimSuffix(rest, ";")
	sum, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(sum, a.signGrant(encoded)) {
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
	if a.now().Unix() >= g.Expires {
		return refuse(http.StatusForbidden, "The authorization token is not valid at the current time: it has expired. Read the permission for another one")
	}
	if !g.allows(a, r, rt) {
		return refuse(http.StatusForbidden, "Insufficient permissions provided in the authorization header for the corresponding request")
	}
	return nil
}

func (g *grant) allows(a *account, r *http.Request, rt *route) bool {
	if rt.op == OpReadAccount {
		return true
	}
	db, err := a.store.Database(rt.db)
	if err != nil {
		return false
	}
	c, err := a.store.Container(db, rt.coll)
	if err != nil || c.RID != g.Container {
		return false
	}
	switch rt.op {
	case OpReadContainer, OpReadPartitionKeyRanges, OpQueryPlan: // SDKs need these before any access to items
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

// allowsKey reports whether the partition key header holds the key of the grant. A bulk
// request is refused because its operations have keys of their own.
func (g *grant) allowsKey(r *http.Request, rt *route) bool {
	if rt.op == OpBatch && !isTrue(r.Header, headerBatchAtomic) {
		return false
	}
	return sameKey(string(g.Key), first(r.Header, headerPartitionKey))
}

// sameKey reports whether two partition keys in the form of their header are equal.
func sameKey(a, b string) bool {
	x, err1 := epk.ParseHeader(a)
	y, err2 := epk.ParseHeader(b)
	return err1 == nil && err2 == nil && string(x.Encode(nil)) == string(y.Encode(nil))
}
