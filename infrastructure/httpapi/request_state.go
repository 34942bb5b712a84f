package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/httpapi/auth"
)

// requestState shares data about one request between the layers of this package. It belongs
// to the goroutine that serves the request.
type requestState struct {
	requestID string
	route     string         // pattern, "" before dispatch or without a match
	id, idKey string         // valid id in the path, and its name in logs
	principal auth.Principal // zero before authentication
	entered   bool           // has a place in the capacity
	code      string         // of the problem in the answer
	failure   error          // for the log
	status    int
	bytes     int64
}

// sharer returns the caller whose share of the capacity the request counts for, "" without
// authentication.
func (x *requestState) sharer() string {
	if x.principal.ID == auth.Anonymous {
		return ""
	}
	return x.principal.ID
}

type stateKey struct{}

func stateOf(ctx context.Context) *requestState {
	x, ok := ctx.Value(stateKey{}).(*requestState)
	if !ok {
		return &requestState{} // the handler was called without the observer
	}
	return x
}

func (x *requestState) traceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return x.requestID
}

// recorder records status and size of an answer in the state, which it owns.
type recorder struct {
	http.ResponseWriter
	state requestState
}

func (w *recorder) WriteHeader(status int) {
	w.state.status = cmp.Or(w.state.status, status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(data []byte) (int, error) {
	w.state.status = cmp.Or(w.state.status, http.StatusOK)
	n, err := w.ResponseWriter.Write(data)
	w.state.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped writer to http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeJSON answers with a JSON document. It ignores write errors, which mean that the
// client has disconnected.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Types of this program always encode; otherwise a test fails.
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body = append(body, '\n') // otherwise the prompt of a shell follows the answer
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
