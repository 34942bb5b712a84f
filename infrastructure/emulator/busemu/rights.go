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

// grant is the rights of a token until it expires.
type grant struct {
	rights  Rights
	expires time.Time
}

// grants are the rights of one connection. The zero value has none.
type grants struct {
	all    Rights           // on every entity, by SASL PLAIN
	byPath map[string]grant // by lower-case path of the audience
}

// of returns the rights on a path: those on the path itself and on any path above it.
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

// audiencePath returns the lower-case path of an audience or of a token's resource, without
// scheme, host and query.
func audiencePath(uri string) string {
	if _, rest, ok := strings.Cut(uri, "://"); ok {
		_, uri, _ = strings.Cut(rest, "/")
	}
	uri, _, _ = strings.Cut(uri, "?")
	return strings.ToLower(strings.Trim(uri, "/"))
}

// samePath compares entity paths as the service does.
func samePath(a, b string) bool { return strings.EqualFold(a, b) }
