package httpapi

import (
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// dispatcher finds the route of a request. http.ServeMux matches the paths; the methods are
// matched here, so that 404 and 405 are problem documents like all other errors.
func (s *Server) dispatcher(routes []route, documents map[string]http.Handler) http.Handler {
	addresses := map[string]map[string]route{}
	var paths []string
	for _, one := range routes {
		if addresses[one.path] == nil {
			addresses[one.path] = map[string]route{}
			paths = append(paths, one.path)
		}
		addresses[one.path][one.method] = one
	}
	mux := http.NewServeMux()
	for _, p := range paths {
		mux.Handle(p, address{server: s, routes: addresses[p]})
	}
	for p, document := range documents {
		mux.Handle(p, s.readOnly(p, document))
	}
	mux.HandleFunc("/", s.notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise ServeMux redirects such paths with an HTML body.
		if p := r.URL.Path; p != "/" && (!strings.HasPrefix(p, "/") || path.Clean(p) != p) {
			s.notFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.turnAway(w, r, &requestError{status: http.StatusNotFound, code: "route_not_found", detail: "this address does not exist"})
}

// address serves the routes of one path by method.
type address struct {
	server *Server
	routes map[string]route
}

func (a address) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http omits the body
	}
	found, ok := a.routes[method]
	if !ok {
		a.server.turnAway(w, r, methodNotAllowed(a.methods()))
		return
	}
	x := stateOf(r.Context())
	x.route = found.path
	if mediaType := found.mediaType(); mediaType != "" && !accepts(r.Header["Accept"], mediaType) {
		a.server.turnAway(w, r, &requestError{status: http.StatusNotAcceptable, code: "not_acceptable", detail: "the answer has the media type " + mediaType})
		return
	}
	defer a.server.leave(x)
	err := a.server.admit(r, found.scope)
	if err != nil && x.principal.ID == "" {
		a.server.turnAway(w, r, err)
		return
	}
	if err == nil && found.doc.body == nil {
		err = a.server.enter(r) // readJSON does it for a request with a body
	}
	if err == nil {
		err = found.handle(w, r)
	}
	if err != nil {
		fail(w, r, err)
	}
}

func methodNotAllowed(allow string) error {
	return &requestError{
		status: http.StatusMethodNotAllowed, code: "method_not_allowed",
		detail: "this address accepts " + allow, header: http.Header{"Allow": {allow}},
	}
}

// methods lists the allowed methods for the header Allow.
func (a address) methods() string {
	var methods []string
	for method := range a.routes {
		methods = append(methods, method)
		if method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// accepts reports whether the Accept header admits a media type (RFC 9110 §12.5.1). The
// most specific range decides; a malformed header admits all.
func accepts(header []string, want string) bool {
	if len(header) == 0 {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	best, admitted := -1, false
	for item := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		mediaRange, parameters, err := mime.ParseMediaType(item)
		if err != nil {
			return true
		}
		specificity := slices.Index([]string{"*/*", family + "/*", want}, mediaRange)
		if specificity <= best {
			continue
		}
		weight := 1.0
		if q, ok := parameters["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				return true
			}
		}
		best, admitted = specificity, weight > 0
	}
	return admitted || best < 0 && len(strings.TrimSpace(strings.Join(header, ""))) == 0
}
