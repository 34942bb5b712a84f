package busemu

import (
	"strings"
	"time"
)

// Rights is a set of the claims of a shared access key.
type Rights uint8

// The claims of Service Bus.
const (
	RightListen Rights = 1 << iota
	RightSend
	RightManage // implies the other two

	allRights = RightListen | RightSend | RightManage
)

// String lists the claims.
func (r Rights) String() string {
	var names []string
	for _, e := range []struct {
		right Rights
		name  string
	}{{RightManage, "Manage"}, {RightSend, "Send"}, {RightListen, "Listen"}} {
		if r&e.right != 0 {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, ",")
}

// grant is what a token allows until it expires.
type grant struct {
	rights  Rights
	expires time.Time
}

// grants are the claims of one connection. The zero value allows nothing.
type grants struct {
	all    Rights           // on every entity, by SASL PLAIN
	byPath map[string]grant // by lower-case path of the audience
}

// grant adds what a token allows, and has the connection's links looked at when
// the token has expired.
func (c *conn) grant(path string, gr grant) {
	if c.grants.byPath == nil {
		c.grants.byPath = make(map[string]grant)
	}
	c.grants.byPath[path] = gr
	wait := time.Until(gr.expires) + time.Millisecond
	if c.expiry == nil {
		c.expiry = time.AfterFunc(wait, func() { c.post(event{fn: c.expireGrants}) })
		c.expires = gr.expires
	} else if gr.expires.Before(c.expires) {
		c.expiry.Reset(wait)
		c.expires = gr.expires
	}
}

// forgetGrants lets all tokens expire at once.
func (c *conn) forgetGrants() {
	clear(c.grants.byPath)
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.expireGrants()
}

// expireGrants forgets tokens that have expired, detaches the links that lived by
// them, and waits for the next.
func (c *conn) expireGrants() {
	now := time.Now()
	var next time.Time
	for path, gr := range c.grants.byPath {
		if !now.Before(gr.expires) {
			delete(c.grants.byPath, path)
		} else if next.IsZero() || gr.expires.Before(next) {
			next = gr.expires
		}
	}
	for _, s := range c.sessions {
		for _, l := range s.links {
			if b := l.base(); b.claim != 0 && b.attach == nil && !b.over() && !c.may(b.claim, b.path) {
				b.sendDetach(errUnauthorized(b.claim.String(), b.path))
				l.release()
			}
		}
	}
	c.expiry = nil
	if !next.IsZero() {
		c.expiry = time.AfterFunc(time.Until(next)+time.Millisecond, func() { c.post(event{fn: c.expireGrants}) })
		c.expires = next
	}
}

// of returns the rights on a path: those granted for it or for a path above it.
func (g *grants) of(path string, now time.Time) Rights {
	rights := g.all
	path = strings.ToLower(path)
	for {
		if gr, ok := g.byPath[path]; ok && now.Before(gr.expires) {
			rights |= gr.rights
		}
		if path == "" {
			break
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	if rights&RightManage != 0 {
		rights = allRights
	}
	return rights
}

// may reports whether the connection has one of the wanted rights on a path.
// Tokens live by the system's clock, which is the client's, not by the broker's.
func (c *conn) may(wanted Rights, path string) bool {
	return c.grants.of(path, time.Now())&wanted != 0
}

// audiencePath is the lower-case path of an audience or a token's resource,
// without scheme, host and query.
func audiencePath(uri string) string {
	if _, rest, ok := strings.Cut(uri, "://"); ok {
		_, uri, _ = strings.Cut(rest, "/")
	}
	uri, _, _ = strings.Cut(uri, "?")
	return strings.ToLower(strings.Trim(uri, "/"))
}

// samePath compares entity paths as the service does.
func samePath(a, b string) bool { return strings.EqualFold(a, b) }
