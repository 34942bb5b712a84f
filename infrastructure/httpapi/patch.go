package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"feedbox/application/command"
	"feedbox/domain/fault"
)

// Patched is the answer to a Patch.
type Patched[V any] struct {
	command.Updated
	View V // the aggregate after the change
}

// Patch is PATCH path/{id} with a JSON merge patch (RFC 7396). It answers 200 with the view
// after the change. B is as in Create; its members are Parts, and Objects of Parts.
func Patch[B any, P bodyOf[B], V any](op Operation, do func(ctx context.Context, body P, target command.Target) (Patched[V], error)) Route {
	if do == nil {
		return noFunction("Patch")
	}
	view := reflect.TypeFor[V]()
	return Route{view: view, changes: true, bind: func(c *collection) route {
		return route{
			method: http.MethodPatch, path: c.one(""),
			handle: func(w http.ResponseWriter, r *http.Request) error { return servePatch[B, P](c, w, r, do) },
			doc: c.document(op, Operation{
				ID: "patch{Noun}", Summary: "Change several parts of {a noun}",
				Description: "A JSON merge patch (RFC 7396) of the {noun}: absent members stay unchanged, null removes. All changes are one transaction, with one event for each kind of change.",
				Reply:       "The {noun} after the change.",
			}, operation{
				body:       bodyOfShape(mediaMergePatch, P(new(B))),
				parameters: changeParameters,
				replies:    []replyDoc{{http.StatusOK, "", c.viewOfOne(view), []string{"ETag", headerSession, headerReplayed}}},
				problems:   append(append([]int(nil), badBody...), badTarget[1:]...),
			}),
		}
	}}
}

func servePatch[B any, P bodyOf[B], V any](c *collection, w http.ResponseWriter, r *http.Request, do func(context.Context, P, command.Target) (Patched[V], error)) error {
	id, err := c.idOf(r)
	if err != nil {
		return err
	}
	document, err := c.readJSON(w, r, mediaMergePatch)
	if err != nil {
		return err
	}
	b := P(new(B))
	if err := fault.Fields(withBreaches(fill(document, b.Members(), notPatched), b.Check())...); err != nil {
		return err
	}
	target, err := c.target(r, id)
	if err != nil {
		return err
	}
	patched, err := do(r.Context(), b, target)
	if err != nil {
		return err
	}
	setUpdated(w.Header(), &patched.Updated)
	writeJSON(w, http.StatusOK, mediaJSON, patched.View)
	return nil
}
