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

// Resource is one kind of aggregate as clients see it. Noun and Routes are required.
type Resource struct {
	// Noun is what people call one, a word of the letters a to z such as order. It stands in
	// problems, their codes (order_not_found), log lines (order_id) and the OpenAPI
	// document, where the schema Order is the view that the routes answer with.
	Noun string
	// Plural is what they call several; default Noun and an s. Reading needs the scope
	// plural.read and changing plural.write, see package auth. It is part of what
	// continuation tokens are sealed with: with another one, those in use end.
	Plural string
	// Path is the address of the listing, such as /api/orders; default /api/ and Plural.
	Path string
	// Description is what the OpenAPI document says of it; default "Orders, and who
	// changed them."
	Description string
	// Problems says what a status from 400 upwards means for this resource, besides what
	// it means for every one. They stand in the OpenAPI document.
	Problems map[int]string
	// Routes are its operations, made by the functions of this package that return one.
	// One that changes an aggregate needs a Read beside it, for If-None-Match.
	Routes []Route
}

var (
	oneWord = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	oneVerb = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

// validate lists what is wrong.
func (r *Resource) validate() []error {
	var faults []error
	wrong := func(format string, a ...any) {
		faults = append(faults, fmt.Errorf("resource %q: "+format, append([]any{r.Noun}, a...)...))
	}
	if !oneWord.MatchString(r.Noun) || !oneWord.MatchString(r.Plural) {
		wrong("Noun and Plural must each be one word of the letters a to z, Plural is %q", r.Plural)
	}
	if !strings.HasPrefix(r.Path, "/") || r.Path == "/" || path.Clean(r.Path) != r.Path || strings.ContainsAny(r.Path, "{} ") {
		wrong("Path must be an absolute path without wildcards, not %q", r.Path)
	}
	for status := range r.Problems {
		if problemDocs[status] == "" {
			wrong("Problems: %d is not a status of problems here", status)
		}
	}
	if len(r.Routes) == 0 {
		wrong("there are no routes")
	}
	return faults
}

// collection is a resource as a server serves it.
type collection struct {
	*Server
	Resource
	words
	tokens *tokenBox
	idKey  string // of log lines
	// The answers that name the thing.
	errMissing, errStale *requestError
	// current is the Read of the resource.
	current func(context.Context, query.Read) (etag, session string, err error)
	view    reflect.Type // of one, nil before any route has said so
}

// newCollection returns r with its defaults, without routes, and lists what is wrong.
func newCollection(s *Server, r Resource) (*collection, []error) {
	r.Plural = cmp.Or(r.Plural, r.Noun+"s")
	r.Path = cmp.Or(r.Path, "/api/"+r.Plural)
	faults := r.validate()
	c := &collection{Server: s, Resource: r, words: words{r.Noun, r.Plural}, idKey: r.Noun + "_id"}
	c.Description = cmp.Or(r.Description, c.say("{Plural}, and who changed them."))
	c.errMissing = &requestError{status: http.StatusNotFound, code: r.Noun + "_not_found", detail: c.say("there is no such {noun}")}
	c.errStale = &requestError{
		status: http.StatusPreconditionFailed, code: "precondition_failed",
		detail: c.say("the {noun} is not in the state that the precondition demands"),
	}
	var err error
	if c.tokens, err = newTokenBox(s.options.TokenKeys, r.Plural); err != nil {
		faults = append(faults, err)
	}
	return c, faults
}

// routes makes the routes and lists what is wrong with them. The audit trail is left out
// where the server has none.
func (c *collection) routes() (routes []route, faults []error) {
	wrong := func(err error) { faults = append(faults, fmt.Errorf("resource %q: %w", c.Noun, err)) }
	changes := false
	for _, one := range c.Routes {
		switch {
		case one.fault != nil:
			wrong(one.fault)
			continue
		case one.bind == nil:
			wrong(errors.New("a Route comes from one of the functions that return it, such as Read"))
			continue
		case one.audit && !c.options.Audit:
			continue
		case one.view != nil && c.view != nil && one.view != c.view:
			wrong(fmt.Errorf("its routes answer with %v and with %v: one view is for all", c.view, one.view))
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
		wrong(errors.New("there are changes and no Read, which If-None-Match on a change needs"))
	}
	return routes, faults
}

// scope is what a caller needs for a method.
func (c *collection) scope(method string) auth.Scope {
	if method == http.MethodGet {
		return auth.Read(c.Plural)
	}
	return auth.Write(c.Plural)
}

// note leaves the id for the log line.
func (c *collection) note(r *http.Request, id string) {
	x := stateOf(r.Context())
	x.idKey, x.id = c.idKey, id
}

// idOf reads the id in the path. Only the form that the service writes, of 36
// characters in lower case, is an id, so that an aggregate has one address.
func (c *collection) idOf(r *http.Request) (uuid.UUID, error) {
	text := r.PathValue("id")
	id, err := uuid.Parse(text)
	if err != nil || text != id.String() || id == uuid.Nil {
		return uuid.Nil, c.errMissing
	}
	c.note(r, text)
	return id, nil
}
