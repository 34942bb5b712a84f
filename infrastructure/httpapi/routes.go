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

// Route is one operation of a resource: its address, handler and documentation. The
// functions of this package build it: Create, Read, List, Change, Act, Patch, Delete,
// Audit. New reports their invalid arguments.
type Route struct {
	bind    func(c *collection) route
	fault   error        // invalid argument
	view    reflect.Type // of the aggregate in the answer, nil without one
	current func(context.Context, query.Read) (etag, session string, err error)
	audit   bool // needs Options.Audit
	changes bool // accepts preconditions of a change
}

// noFunction returns the route of a nil function.
func noFunction(kind string) Route {
	return Route{fault: fmt.Errorf("%s: the function is nil", kind)}
}

// route is a Route of one resource on one server.
type route struct {
	method, path string
	handle       func(w http.ResponseWriter, r *http.Request) error
	doc          operation

	collection *collection
	scope      auth.Scope // required of the caller
}

// mediaType returns the media type of the answer, "" without a body. A client that does not
// accept it gets 406.
func (r route) mediaType() string {
	for _, reply := range r.doc.replies {
		if reply.view != nil {
			return mediaJSON
		}
	}
	return ""
}

// one returns the path of one aggregate, or of a path below it.
func (c *collection) one(below string) string {
	if below != "" {
		below = "/" + below
	}
	return c.Path + "/{id}" + below
}

// routes builds the routes of all resources. The error lists all faults.
func (s *Server) routes() ([]route, error) {
	var all []route
	var faults []error
	if len(s.collections) == 0 {
		faults = append(faults, errors.New("there is no resource to serve"))
	}
	taken := taken{"schema Problem": true, "schema " + auditPage: true}
	for i, c := range s.collections {
		for _, other := range s.collections[:i] {
			if below(c.Path, other.Path) || below(other.Path, c.Path) {
				faults = append(faults, fmt.Errorf("resources %q and %q: their paths overlap", other.Noun, c.Noun))
			}
		}
		for _, reserved := range []string{pathDocs, pathOpenAPI} {
			if below(c.Path, reserved) {
				faults = append(faults, fmt.Errorf("resource %q: the path %s is reserved", c.Noun, reserved))
			}
		}
		faults = append(faults, taken.claim(c, "noun "+c.Noun), taken.claim(c, "plural "+c.Plural),
			taken.claim(c, "schema "+title(c.Noun)), taken.claim(c, "schema "+title(c.Noun)+"Page"))
		routes, wrong := c.routes()
		faults = append(faults, wrong...)
		for _, one := range routes {
			faults = append(faults, one.doc.check(), taken.claim(c, one.method+" "+one.path), taken.claim(c, "operation "+one.doc.id))
			if one.doc.body != nil {
				faults = append(faults, taken.claim(c, "schema "+one.doc.body.name))
			}
		}
		all = append(all, routes...)
	}
	return all, errors.Join(faults...)
}

// taken holds the names that must be unique on a server.
type taken map[string]bool

func (t taken) claim(c *collection, name string) error {
	if t[name] {
		return fmt.Errorf("resource %q: duplicate %s", c.Noun, name)
	}
	t[name] = true
	return nil
}

// below reports whether a path is equal to another or below it.
func below(path, above string) bool { return path == above || strings.HasPrefix(path, above+"/") }
