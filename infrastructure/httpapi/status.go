package httpapi

import (
	"net/http"

	"feedbox/application/command"
	"feedbox/domain/fault"
)

// statusClientClosed is logged and measured when the client closed its side of the
// connection before the answer. What is sent, should anybody read it, is 503 with
// codeClientClosed.
const (
	statusClientClosed = 499
	codeClientClosed   = "client_closed"
)

// statusOf is the one table from kinds of faults to statuses.
//
// Invalid is 422 where it names fields of the body: the request was
// understood, its content breaks a rule (RFC 9110 §15.5.21). So it is where
// an idempotency key comes with another content than before. Without fields
// something beside the body is malformed, such as a session token: 400.
func statusOf(f *fault.Error) int {
	switch f.Kind {
	case fault.Invalid:
		if len(f.Fields) == 0 && f.Code != command.CodeKeyReused {
			return http.StatusBadRequest
		}
		return http.StatusUnprocessableEntity
	case fault.NotFound:
		return http.StatusNotFound
	case fault.NotModified:
		return http.StatusNotModified
	case fault.Conflict:
		return http.StatusConflict
	case fault.PreconditionFailed:
		return http.StatusPreconditionFailed
	case fault.Gone:
		return http.StatusGone
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Throttled:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Internal:
		return http.StatusInternalServerError
	default:
		return http.StatusInternalServerError
	}
}
