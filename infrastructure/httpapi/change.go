package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"feedbox/application/command"
)

// Change is POST path/{id}/verb with a body. It answers 204 with the ETag of the new
// state. B is as in Create; verb consists of lower-case words joined by hyphens.
func Change[B any, P bodyOf[B]](verb string, op Operation, do func(ctx context.Context, body P, target command.Target) (command.Updated, error)) Route {
	if do == nil {
		return noFunction("Change " + verb)
	}
	return verbRoute(verb, op, func(c *collection) route {
		return route{
			handle: func(w http.ResponseWriter, r *http.Request) error {
				b := P(new(B))
				return c.change(w, r, b, func(ctx context.Context, target command.Target) (command.Updated, error) { return do(ctx, b, target) })
			},
			doc: operation{
				body:     bodyOfShape(mediaJSON, P(new(B))),
				problems: append(append([]int(nil), badBody...), badTarget[1:]...),
			},
		}
	})
}

// Act is Change without a body.
func Act(verb string, op Operation, do func(ctx context.Context, target command.Target) (command.Updated, error)) Route {
	if do == nil {
		return noFunction("Act " + verb)
	}
	return verbRoute(verb, op, func(c *collection) route {
		return route{
			handle: func(w http.ResponseWriter, r *http.Request) error { return c.change(w, r, nil, do) },
			doc:    operation{problems: append([]int{http.StatusUnprocessableEntity}, badTarget...)},
		}
	})
}

// change serves a change, with a body unless b is nil.
func (c *collection) change(w http.ResponseWriter, r *http.Request, b Body, do func(context.Context, command.Target) (command.Updated, error)) error {
	id, err := c.idOf(r)
	if err != nil {
		return err
	}
	if b != nil {
		if err := c.decode(w, r, b); err != nil {
			return err
		}
	}
	target, err := c.target(r, id)
	if err != nil {
		return err
	}
	updated, err := do(r.Context(), target)
	if err != nil {
		return err
	}
	setUpdated(w.Header(), &updated)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func verbRoute(verb string, op Operation, handled func(c *collection) route) Route {
	if !verbPattern.MatchString(verb) {
		return Route{fault: fmt.Errorf("the verb %q must consist of lower-case words joined by hyphens", verb)}
	}
	return Route{changes: true, bind: func(c *collection) route {
		made := handled(c)
		made.method, made.path = http.MethodPost, c.one(verb)
		made.doc.parameters = changeParameters
		made.doc.replies = []replyDoc{{http.StatusNoContent, "", nil, []string{"ETag", headerSession, headerReplayed}}}
		made.doc = c.document(op, Operation{
			ID: camel(verb), Summary: summaryOf(verb), Description: "A request that changes nothing stores nothing and keeps the ETag.", Reply: "The {noun} is changed.",
		}, made.doc)
		return made
	}}
}

// Delete is DELETE path/{id}. It answers 204, also if the aggregate is already deleted.
func Delete(op Operation, do func(ctx context.Context, target command.Target) (command.Updated, error)) Route {
	if do == nil {
		return noFunction("Delete")
	}
	return Route{changes: true, bind: func(c *collection) route {
		return route{
			method: http.MethodDelete, path: c.one(""),
			handle: func(w http.ResponseWriter, r *http.Request) error { return c.change(w, r, nil, do) },
			doc: c.document(op, Operation{
				ID: "delete{Noun}", Summary: "Delete {a noun}",
				Description: "Deleting it again succeeds and changes nothing.",
				Reply:       "The {noun} is deleted.",
			}, operation{
				parameters: changeParameters,
				replies:    []replyDoc{{http.StatusNoContent, "", nil, []string{headerSession, headerReplayed}}},
				problems:   append([]int{http.StatusUnprocessableEntity}, badTarget...),
			}),
		}
	}}
}

func setUpdated(h http.Header, updated *command.Updated) {
	setState(h, updated.ETag, updated.SessionToken)
	setReplayed(h, updated.Replayed)
}
