package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"feedbox/application/query"
	"feedbox/infrastructure/httpapi/auth"
)

// Route is one operation of a resource: how it is reached, who answers, and what clients
// may rely on. The functions of this package make it: Create, Read, List, Change, Act,
// Patch, Delete, Audit. What they are given wrongly is an error of New.
type Route struct {
	bind    func(c *collection) route
	fault   error        // of whoever made it
	view    reflect.Type // of the one aggregate in the answer, nil for none
	current func(context.Context, query.Read) (etag, session string, err error)
	audit   bool // only where the server offers audit trails
	changes bool // takes preconditions of a change
}

// noFunction is the route of a function that is missing.
func noFunction(kind string) Route {
	return Route{fault: fmt.Errorf("%s: the function is nil", kind)}
}

// route is a Route of one resource on one server.
type route struct {
	method, path string
	handle       func(w http.ResponseWriter, r *http.Request) error
	// doc is what the OpenAPI document says.
	doc operation

	collection *collection
	// scope is what the caller must be allowed to do.
	scope auth.Scope
}

// answers is the media type of the answer, "" where it has no body. A client
// that does not accept it gets 406.
func (r route) answers() string {
	for _, reply := range r.doc.replies {
		if reply.view != nil {
			return mediaJSON
		}
	}
	return ""
}

// one is the path of one aggregate, or of something below it.
func (c *collection) one(below string) string {
	if below != "" {
		below = "/" + below
	}
	return c.Path + "/{id}" + below
}

// routes makes the routes of all resources. The error lists what is wrong with them.
func (s *Server) routes() ([]route, error) {
	var all []route
	var faults []error
	if len(s.collections) == 0 {
		faults = append(faults, errors.New("there is nothing to serve: no resource"))
	}
	taken := taken{"schema Problem": true, "schema " + auditPage: true}
	for i, c := range s.collections {
		for _, other := range s.collections[:i] {
			if below(c.Path, other.Path) || below(other.Path, c.Path) {
				faults = append(faults, fmt.Errorf("resources %q and %q: one path is the other or lies below it", other.Noun, c.Noun))
			}
		}
		for _, reserved := range []string{pathDocs, pathOpenAPI} {
			if below(c.Path, reserved) {
				faults = append(faults, fmt.Errorf("resource %q: the path %s is taken", c.Noun, reserved))
			}
		}
		faults = append(faults, taken.by(c, "noun "+c.Noun), taken.by(c, "plural "+c.Plural),
			taken.by(c, "schema "+title(c.Noun)), taken.by(c, "schema "+title(c.Noun)+"Page"))
		routes, wrong := c.routes()
		faults = append(faults, wrong...)
		for _, one := range routes {
			faults = append(faults, one.doc.check(), taken.by(c, one.method+" "+one.path), taken.by(c, "operation "+one.doc.id))
			if one.doc.body != nil {
				faults = append(faults, taken.by(c, "schema "+one.doc.body.name))
			}
		}
		all = append(all, routes...)
	}
	return all, errors.Join(faults...)
}

// taken are the names that must be unique in a server.
type taken map[string]bool

func (t taken) by(c *collection, name string) error {
	if t[name] {
		return fmt.Errorf("resource %q: there is another %s", c.Noun, name)
	}
	t[name] = true
	return nil
}

// below tells whether a path is another or lies below it.
func below(path, above string) bool { return path == above || strings.HasPrefix(path, above+"/") }
