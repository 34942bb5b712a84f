package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/infrastructure/httpapi/auth"
)

// Resource is one kind of aggregate in the API. Noun and Routes are required.
type Resource struct {
	// Noun names one aggregate with a word of the letters a to z, such as order. It is used
	// in problems, their codes (order_not_found), log lines (order_id) and the OpenAPI
	// document, where the schema Order is the view of the routes.
	Noun string
	// Plural names several; default Noun and an s. Reading needs the scope plural.read and
	// changing plural.write, see package auth. A change of Plural invalidates the
	// continuation tokens in use, because their keys depend on it.
	Plural string
	// Path is the address of the listing, such as /api/orders; default /api/ and Plural.
	Path string
	// Description describes the resource in the OpenAPI document; default "Orders, and who
	// changed them."
	Description string
	// Problems adds to the description of statuses from 400 upwards in the OpenAPI document.
	Problems map[int]string
	// Routes lists the operations, built by Create, Read and so on. A route that changes an
	// aggregate requires a Read in the same resource, for If-None-Match.
	Routes []Route
}

var (
	wordPattern = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	verbPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

func (r *Resource) validate() []error {
	var faults []error
	wrong := func(format string, a ...any) {
		faults = append(faults, fmt.Errorf("resource %q: "+format, append([]any{r.Noun}, a...)...))
	}
	if !wordPattern.MatchString(r.Noun) || !wordPattern.MatchString(r.Plural) {
		wrong("Noun and Plural must each be one word of the letters a to z, Plural is %q", r.Plural)
	}
	if !strings.HasPrefix(r.Path, "/") || r.Path == "/" || path.Clean(r.Path) != r.Path || strings.ContainsAny(r.Path, "{} ") {
		wrong("Path must be an absolute path without wildcards, not %q", r.Path)
	}
	for status := range r.Problems {
		if problemDocs[status] == "" {
			wrong("Problems: %d is not a supported problem status", status)
		}
	}
	if len(r.Routes) == 0 {
		wrong("Routes is empty")
	}
	return faults
}

// collection is a resource on a server.
type collection struct {
	*Server
	Resource
	words
	tokens *tokenBox
	idKey  string // of log lines
	// These answers contain the noun.
	errMissing, errStale *requestError
	// current reads the ETag through the Read of the resource.
	current func(context.Context, query.Read) (etag, session string, err error)
	view    reflect.Type // of one aggregate, nil before the first route with a view
}

// newCollection returns r with its defaults, without routes, and lists its faults.
func newCollection(s *Server, r Resource) (*collection, []error) {
	r.Plural = cmp.Or(r.Plural, r.Noun+"s")
	r.Path = cmp.Or(r.Path, "/api/"+r.Plural)
	faults := r.validate()
	c := &collection{Server: s, Resource: r, words: words{r.Noun, r.Plural}, idKey: r.Noun + "_id"}
	c.Description = cmp.Or(r.Description, c.say("{Plural}, and who changed them."))
	c.errMissing = &requestError{status: http.StatusNotFound, code: r.Noun + "_not_found", detail: c.say("there is no such {noun}")}
	c.errStale = &requestError{
		status: http.StatusPreconditionFailed, code: "precondition_failed",
		detail: c.say("the {noun} is not in the state that the precondition requires"),
	}
	var err error
	if c.tokens, err = newTokenBox(s.options.TokenKeys, r.Plural); err != nil {
		faults = append(faults, err)
	}
	return c, faults
}

// routes builds the routes and lists their faults. It omits the audit trail unless
// Options.Audit is set.
func (c *collection) routes() (routes []route, faults []error) {
	wrong := func(err error) { faults = append(faults, fmt.Errorf("resource %q: %w", c.Noun, err)) }
	changes := false
	for _, one := range c.Routes {
		switch {
		case one.fault != nil:
			wrong(one.fault)
			continue
		case one.bind == nil:
			wrong(errors.New("a Route is not built by this package: use a function such as Read"))
			continue
		case one.audit && !c.options.Audit:
			continue
		case one.view != nil && c.view != nil && one.view != c.view:
			wrong(fmt.Errorf("its routes have the views %v and %v: all must have the same", c.view, one.view))
		}
		if one.view != nil {
			c.view = one.view
		}
		if one.current != nil {
			c.current = one.current
		}
		changes = changes || one.changes
		made := one.bind(c)
		made.collection, made.scope = c, c.scope(made.method)
		routes = append(routes, made)
	}
	if changes && c.current == nil {
		wrong(errors.New("it has changes but no Read, which If-None-Match on a change requires"))
	}
	return routes, faults
}

// scope returns the required scope of a method.
func (c *collection) scope(method string) auth.Scope {
	if method == http.MethodGet {
		return auth.Read(c.Plural)
	}
	return auth.Write(c.Plural)
}

// note sets the id for the log line.
func (c *collection) note(r *http.Request, id string) {
	x := stateOf(r.Context())
	x.idKey, x.id = c.idKey, id
}

// idOf returns the id in the path. It accepts only the form that the service writes, 36
// characters in lower case, so that an aggregate has one address.
func (c *collection) idOf(r *http.Request) (uuid.UUID, error) {
	text := r.PathValue("id")
	id, err := uuid.Parse(text)
	if err != nil || text != id.String() || id == uuid.Nil {
		return uuid.Nil, c.errMissing
	}
	c.note(r, text)
	return id, nil
}
