package busemu

import (
	"time"
)

// grant adds the rights of a token, and checks the connection's links when the token expires.
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

// forgetGrants expires all tokens at once.
func (c *conn) forgetGrants() {
	clear(c.grants.byPath)
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.expireGrants()
}

// expireGrants removes expired tokens, detaches the links that depended on them, and sets the
// timer for the next.
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

// may reports whether the connection has one of the wanted rights on a path. Tokens use the
// system's clock, which is the client's, not the broker's.
func (c *conn) may(wanted Rights, path string) bool {
	return c.grants.of(path, time.Now())&wanted != 0
}
