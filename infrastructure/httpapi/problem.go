package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"feedbox/application/command"
	"feedbox/domain/fault"
)

// problem is the body of every answer from 400 upwards (RFC 9457). The type is about:blank,
// the title is the phrase of the status, and code identifies the problem.
type problem struct {
	Type    string         `json:"type"`
	Title   string         `json:"title"`
	Status  int            `json:"status"`
	Detail  string         `json:"detail"`
	Code    string         `json:"code"`
	TraceID string         `json:"traceId"`
	Errors  []problemField `json:"errors,omitempty"`
}

// problemField is one broken rule.
type problemField struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// requestError is a failure of HTTP: syntax, routing or limits. All other failures are
// faults of the application.
type requestError struct {
	status int
	code   string
	detail string
	fields []fault.Field
	header http.Header // added to the answer
	cause  error       // for the log
}

func (e *requestError) Error() string {
	if e.cause != nil {
		return e.detail + ": " + e.cause.Error()
	}
	return e.detail
}

func (e *requestError) Unwrap() error { return e.cause }

func badRequest(code, detail string) error {
	return &requestError{status: http.StatusBadRequest, code: code, detail: detail}
}

// maxProblemFields bounds the answer to a body with many faults.
const maxProblemFields = 100

// defaultRetryAfter is the Retry-After of a temporary failure of unknown length.
const defaultRetryAfter = time.Second

// fail answers r with the problem of err. It leaves the error to the access log, so that
// it is logged once.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	x := stateOf(r.Context())
	p, header := describe(r.Context(), err)
	x.code = p.Code
	if p.Status >= http.StatusInternalServerError {
		x.failure = err
	}
	if p.Code == codeClientClosed {
		x.status = statusClientClosed
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	if p.Status == http.StatusNotModified {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	p.TraceID = x.traceID(r.Context())
	w.Header().Set(headerErrorCode, p.Code)
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, p.Status, mediaProblem, p)
}

// describe returns the problem of an error, with its headers.
func describe(ctx context.Context, err error) (problem, http.Header) {
	p := problem{Type: "about:blank"}
	header := http.Header{}
	var request *requestError
	var known *fault.Error
	switch {
	case errors.As(err, &request):
		p.Status, p.Code, p.Detail = request.status, request.code, request.detail
		p.Errors = problemFields(request.fields)
		maps.Copy(header, request.header)
	case errors.Is(ctx.Err(), context.Canceled):
		// The connection may be half-closed: a client that has ended its side may still read
		// the answer. The outcome is unknown, so no other answer would be true.
		p.Status, p.Code, p.Detail = http.StatusServiceUnavailable, codeClientClosed, "the connection was closed before the answer; the outcome of the request is not known"
	case errors.As(err, &known) && known.Kind != fault.Internal:
		p.Status, p.Code, p.Detail = statusOf(known), known.Code, known.Message
		p.Errors = problemFields(known.Fields)
	case errors.Is(err, context.DeadlineExceeded):
		p.Status, p.Code, p.Detail = http.StatusServiceUnavailable, "timeout", "the request was not completed in time; its outcome is not known"
	default:
		p.Status, p.Code, p.Detail = http.StatusInternalServerError, "internal", "an unexpected error occurred; report the trace id"
	}
	p.Title = http.StatusText(p.Status)
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		if header.Get("Retry-After") == "" {
			header.Set("Retry-After", retryAfter(fault.RetryAfter(err)))
		}
	}
	return p, header
}

// retryAfter formats a wait in whole seconds, rounded up, at least one.
func retryAfter(wait time.Duration) string {
	if wait <= 0 {
		wait = defaultRetryAfter
	}
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}

func problemFields(fields []fault.Field) []problemField {
	if len(fields) == 0 {
		return nil
	}
	fields = fields[:min(len(fields), maxProblemFields)]
	out := make([]problemField, len(fields))
	for i, f := range fields {
		out[i] = problemField{Pointer: f.Pointer, Detail: f.Message}
	}
	return out
}

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
