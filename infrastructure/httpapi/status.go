package httpapi

import (
	"cmp"
	"net/http"

	"feedbox/application/command"
	"feedbox/domain/fault"
)

// statusClientClosed is the status in logs and metrics if the client closed its side of the
// connection before the answer. A client that still reads gets 503 with codeClientClosed.
const (
	statusClientClosed = 499
	codeClientClosed   = "client_closed"
)

// statuses is the only mapping of fault kinds to statuses; all other kinds are 500.
var statuses = map[fault.Kind]int{
	fault.Invalid:            http.StatusUnprocessableEntity,
	fault.NotFound:           http.StatusNotFound,
	fault.NotModified:        http.StatusNotModified,
	fault.Conflict:           http.StatusConflict,
	fault.PreconditionFailed: http.StatusPreconditionFailed,
	fault.Gone:               http.StatusGone,
	fault.TooLarge:           http.StatusRequestEntityTooLarge,
	fault.Throttled:          http.StatusTooManyRequests,
	fault.Unavailable:        http.StatusServiceUnavailable,
}

// statusOf returns the status of a fault.
//
// Invalid is 422 if it has fields of the body, because the request was understood but its
// content breaks a rule (RFC 9110 §15.5.21). The same holds for an idempotency key that was
// used with other content. Without fields the request is malformed outside of the body,
// for example in a session token, which is 400.
func statusOf(f *fault.Error) int {
	if f.Kind == fault.Invalid && len(f.Fields) == 0 && f.Code != command.CodeKeyReused {
		return http.StatusBadRequest
	}
	return cmp.Or(statuses[f.Kind], http.StatusInternalServerError)
}
