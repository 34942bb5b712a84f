package httpapi

import (
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

// statusOf is the only mapping of fault kinds to statuses.
//
// Invalid is 422 if it has fields of the body, because the request was understood but its
// content breaks a rule (RFC 9110 §15.5.21). The same holds for an idempotency key that was
// used with other content. Without fields the request is malformed outside of the body,
// for example in a session token, which is 400.
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
