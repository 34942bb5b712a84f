package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/google/uuid"

	"feedbox/application/command"
)

// Creation has the parameters of a create request besides its body.
type Creation struct {
	// IfMatch requires a state of the aggregate. A new aggregate has no state, so any
	// requirement fails.
	IfMatch []string
	// SessionToken is the client's session; it may be empty.
	SessionToken string
	command.Sender
}

// Created is the answer to a Creation.
type Created[V any] struct {
	ID   uuid.UUID
	View V // the current aggregate
	// ETag and SessionToken are as in command.Updated.
	ETag, SessionToken string
	// Replayed is true if an earlier request with the same key created the aggregate.
	Replayed bool
}

// Create is POST on the path of the resource. It answers 201 with Location, ETag and the
// view. A repeat with the same idempotency key is answered with 200 and the current
// aggregate. B is the body, a struct whose pointer is a Body; do may keep it.
func Create[B any, P bodyOf[B], V any](op Operation, do func(ctx context.Context, body P, in Creation) (Created[V], error)) Route {
	if do == nil {
		return noFunction("Create")
	}
	view := reflect.TypeFor[V]()
	return Route{view: view, bind: func(c *collection) route {
		return route{
			method: http.MethodPost, path: c.Path,
			handle: func(w http.ResponseWriter, r *http.Request) error { return serveCreate[B, P](c, w, r, do) },
			doc:    c.createDoc(op, P(new(B)), view),
		}
	}}
}

func serveCreate[B any, P bodyOf[B], V any](c *collection, w http.ResponseWriter, r *http.Request, do func(context.Context, P, Creation) (Created[V], error)) error {
	p, err := preconditionsOf(http.Header{"If-Match": r.Header["If-Match"], "If-None-Match": r.Header["If-None-Match"]}, nil)
	if err != nil {
		return err
	}
	session, err := single(r.Header, headerSession)
	if err != nil {
		return err
	}
	sender, err := senderOf(r)
	if err != nil {
		return err
	}
	b := P(new(B))
	if err := c.decode(w, r, b); err != nil {
		return err
	}
	// If-None-Match always holds, because the aggregate does not exist yet.
	created, err := do(r.Context(), b, Creation{IfMatch: p.match.list(), SessionToken: session, Sender: sender})
	if err != nil {
		return err
	}
	id := created.ID.String()
	c.note(r, id)
	w.Header().Set("Location", c.Path+"/"+id)
	setState(w.Header(), created.ETag, created.SessionToken)
	setReplayed(w.Header(), created.Replayed)
	status := http.StatusCreated
	if created.Replayed {
		status = http.StatusOK
	}
	writeJSON(w, status, mediaJSON, created.View)
	return nil
}

func (c *collection) createDoc(op Operation, b Body, view reflect.Type) operation {
	return c.document(op, Operation{
		ID: "create{Noun}", Summary: "Create {a noun}",
		Description: "With an Idempotency-Key the request can be repeated at any time: it creates at most one {noun}.",
		Reply:       "The {noun} was created.",
	}, operation{
		body:       bodyOfShape(mediaJSON, b),
		parameters: []string{headerIdempotencyKey, "If-Match", "If-None-Match", headerSession},
		replies: []replyDoc{
			{http.StatusCreated, "", c.viewOfOne(view), []string{"Location", "ETag", headerSession}},
			{http.StatusOK, "An earlier request with the same key created the {noun}; this is its current state.", c.viewOfOne(view), []string{"Location", "ETag", headerSession, headerReplayed}},
		},
		problems: append([]int{http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed}, badBody...),
	})
}

// setState sets the headers with ETag and session token. Either may be empty.
func setState(h http.Header, etag, sessionToken string) {
	if etag != "" {
		h[headerETag] = []string{etag}
	}
	if sessionToken != "" {
		h[headerSession] = []string{sessionToken}
	}
}
