package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"feedbox/application/query"
	"feedbox/domain/fault"
)

// Found is the answer to a Read.
type Found[V any] struct {
	View         V
	ETag         string // quoted as in HTTP
	SessionToken string // may be empty
}

// Read is GET path/{id}. It answers 200 with the view, or 304 if the client has the current
// state. Do may return fault.NotModified if query.Read.IfNoneMatch contains the ETag, or
// leave the comparison to Read. A change with If-None-Match also calls it for the ETag.
func Read[V any](op Operation, do func(ctx context.Context, in query.Read) (Found[V], error)) Route {
	if do == nil {
		return noFunction("Read")
	}
	view := reflect.TypeFor[V]()
	current := func(ctx context.Context, in query.Read) (etag, session string, err error) {
		found, err := do(ctx, in)
		return found.ETag, found.SessionToken, err
	}
	return Route{view: view, current: current, bind: func(c *collection) route {
		return route{
			method: http.MethodGet, path: c.one(""),
			handle: func(w http.ResponseWriter, r *http.Request) error { return serveRead(c, w, r, do) },
			doc: c.document(op, Operation{ID: "read{Noun}", Summary: "Read {a noun}", Reply: "The {noun}."}, operation{
				parameters: []string{"If-None-Match", "If-Match", "ETag", headerSession},
				replies: []replyDoc{
					{http.StatusOK, "", c.viewOfOne(view), []string{"ETag", headerSession}},
					{http.StatusNotModified, "The {noun} is still in a state listed in If-None-Match.", nil, []string{"ETag", headerSession}},
				},
				problems: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusPreconditionFailed},
			}),
		}
	}}
}

func serveRead[V any](c *collection, w http.ResponseWriter, r *http.Request, do func(context.Context, query.Read) (Found[V], error)) error {
	id, err := c.idOf(r)
	if err != nil {
		return err
	}
	p, err := preconditionsOf(r.Header, func(p *preconditions) *tagList { return &p.noneMatch })
	if err != nil {
		return err
	}
	session, err := single(r.Header, headerSession)
	if err != nil {
		return err
	}
	in := query.Read{ID: id, SessionToken: session}
	// The store compares a single tag, which saves the transfer of the document. Several
	// tags are compared here, because a 304 must have the tag that matched.
	single := ""
	if len(p.noneMatch.tags) == 1 && !p.match.present() {
		single = strings.TrimPrefix(p.noneMatch.tags[0], "W/")
		in.IfNoneMatch = []string{single}
	}
	found, err := do(r.Context(), in)
	if fault.Is(err, fault.NotModified) {
		return notModified(w, single)
	}
	if err != nil {
		return err
	}
	if p.match.present() && !p.match.matchesStrong(found.ETag) {
		return c.errStale
	}
	setState(w.Header(), found.ETag, found.SessionToken)
	if p.noneMatch.matchesWeak(found.ETag) {
		return notModified(w, found.ETag)
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	writeJSON(w, http.StatusOK, mediaJSON, found.View)
	return nil
}

// notModified answers 304 with the headers of the corresponding 200.
func notModified(w http.ResponseWriter, etag string) error {
	setState(w.Header(), etag, "")
	w.Header().Set("Cache-Control", "private, no-cache")
	return fault.New(fault.NotModified, "", "nothing has changed")
}
