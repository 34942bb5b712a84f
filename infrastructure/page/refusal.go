package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"feedbox/domain/fault"
)

// Refusal is an error for people: what is wrong, and what to do next.
type Refusal struct { //nolint:errname // shown to people as it is
	Status       int // HTTP status
	Title        string
	Detail, Next string
}

// Error returns title and detail.
func (r *Refusal) Error() string { return r.Title + ": " + r.Detail }

// Moved is the error of a view or act that redirects to another address of the page.
type Moved struct{ To string } //nolint:errname // a redirect, not a failure

// Error returns the address.
func (m *Moved) Error() string { return "moved to " + m.To }

func refusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		r := &Refusal{Status: http.StatusInternalServerError, Title: "The request failed", Detail: f.Error()}
		switch f.Kind {
		case fault.NotFound:
			r.Status, r.Title = http.StatusNotFound, "Not found"
		case fault.PreconditionFailed:
			r.Status, r.Title, r.Next = http.StatusPreconditionFailed, "Changed meanwhile", "Load the page again, and repeat the act if you still want it."
		case fault.Conflict:
			r.Status, r.Title = http.StatusConflict, "Not possible in this state"
		case fault.Invalid:
			r.Status, r.Title = http.StatusBadRequest, "Invalid request"
		case fault.Throttled:
			r.Status, r.Title, r.Next = http.StatusServiceUnavailable, "The database is throttled", "Try again in a moment: the account has too few request units."
		default: // an internal error
		}
		return r
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Refusal{
			Status: http.StatusGatewayTimeout, Title: "No answer in time", Detail: err.Error(),
			Next: "Load the page again; the Doctor section checks the dependencies.",
		}
	}
	return &Refusal{Status: http.StatusBadGateway, Title: "The request failed", Detail: err.Error(), Next: "The Doctor section checks the dependencies and suggests changes."}
}

// viewTimeout bounds the wait of a person for one answer.
const viewTimeout = 30 * time.Second
