package httpapi

import "net/http"

// Header fields in canonical form, because net/http would convert any other spelling with
// each use. Clients may use any spelling.
const (
	headerETag          = "Etag"
	headerRequest       = "X-Ms-Request-Id"        // of every answer
	headerClientRequest = "X-Ms-Client-Request-Id" // of a request, echoed
	headerErrorCode     = "X-Ms-Error-Code"        // of a problem, its code
	headerSession       = "X-Ms-Session-Token"     // both ways
	headerTraceparent   = "Traceparent"            // of a request, W3C Trace Context
	headerContinuation  = "X-Continuation-Token"   // both ways

	headerIdempotencyKey = "Idempotency-Key"      // of a change
	headerReplayed       = "Idempotency-Replayed" // of the answer to a repeat
)

// queryContinuation carries the continuation token in a link.
const queryContinuation = "continuationToken"

// Media types.
const (
	mediaJSON       = "application/json"
	mediaMergePatch = "application/merge-patch+json"
	mediaProblem    = "application/problem+json"
)

// maxClientRequestID bounds the client request ids that are echoed.
const maxClientRequestID = 128

// single returns a header that may occur once, by its canonical name. It refuses a repeated
// header, because the values may contradict each other.
func single(h http.Header, name string) (string, error) {
	switch values := h[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", badRequest("repeated_header", "the header "+name+" must be given once")
	}
}
