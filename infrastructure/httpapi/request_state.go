package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/httpapi/auth"
)

// requestState is what the layers of this package tell each other about one
// request. It belongs to the goroutine that serves the request.
type requestState struct {
	requestID string
	route     string         // pattern, "" before dispatch or where nothing matched
	id, idKey string         // of the path, only where it is a valid id; its name in logs
	principal auth.Principal // who calls, zero before authentication
	entered   bool           // holds a place in the capacity
	code      string         // of the problem that was answered
	failure   error          // to be logged
	status    int
	bytes     int64
}

type stateKey struct{}

func stateOf(ctx context.Context) *requestState {
	x, ok := ctx.Value(stateKey{}).(*requestState)
	if !ok {
		return &requestState{} // a handler called without the observer around it
	}
	return x
}

// traceID is the trace that problems and logs point to.
func (x *requestState) traceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return x.requestID
}

// recorder notes status and size of an answer in the state, which it owns.
type recorder struct {
	http.ResponseWriter
	state requestState
}

func (w *recorder) WriteHeader(status int) {
	if w.state.status == 0 {
		w.state.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(data []byte) (int, error) {
	if w.state.status == 0 {
		w.state.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(data)
	w.state.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController the writer below.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeJSON answers with a JSON document. A client that has gone away is not
// an error of ours.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Our own types always encode; a test would show the contrary.
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
