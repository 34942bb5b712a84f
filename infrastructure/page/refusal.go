package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"feedbox/domain/fault"
)

// Refusal is an error that says in words what is wrong and what to do next.
type Refusal struct { //nolint:errname // it is what a person reads
	Status       int // of HTTP
	Title        string
	Detail, Next string
}

// Error is the title and the detail.
func (r *Refusal) Error() string { return r.Title + ": " + r.Detail }

// Moved is the error of a view that leads to another address of the page.
type Moved struct{ To string } //nolint:errname // it is no failure

// Error names the address.
func (m *Moved) Error() string { return "moved to " + m.To }

// refusal puts any error into words.
func refusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		r := &Refusal{Status: http.StatusInternalServerError, Title: "That did not work", Detail: f.Error()}
		switch f.Kind {
		case fault.NotFound:
			r.Status, r.Title = http.StatusNotFound, "There is no such thing"
		case fault.PreconditionFailed:
			r.Status, r.Title, r.Next = http.StatusPreconditionFailed, "Somebody else was faster", "Look again, and repeat what you wanted."
		case fault.Conflict:
			r.Status, r.Title = http.StatusConflict, "That is not possible now"
		case fault.Invalid:
			r.Status, r.Title = http.StatusBadRequest, "That is not valid"
		case fault.Throttled:
			r.Status, r.Title, r.Next = http.StatusServiceUnavailable, "The database is busy", "Try again in a moment: the account has too few request units."
		default: // as above
		}
		return r
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Refusal{
			Status: http.StatusGatewayTimeout, Title: "No answer in time", Detail: err.Error(),
			Next: "Load the page again; the doctor examines the surroundings.",
		}
	}
	return &Refusal{Status: http.StatusBadGateway, Title: "That did not work", Detail: err.Error(), Next: "The doctor examines the surroundings and says what to change."}
}

// viewTimeout bounds what a person waits for one answer.
const viewTimeout = 30 * time.Second
