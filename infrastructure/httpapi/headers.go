package httpapi

import "net/http"

// Header fields, spelt as net/http keeps them: another spelling would be
// converted with each use. Clients may spell them as they like.
const (
	headerETag          = "Etag"
	headerRequest       = "X-Ms-Request-Id"        // of every answer
	headerClientRequest = "X-Ms-Client-Request-Id" // of a request, returned
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

// maxClientRequestID is the longest id of a client that is returned.
const maxClientRequestID = 128

// single returns a header that may occur once, by its canonical name. Two of them
// could contradict each other, so they are refused.
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
