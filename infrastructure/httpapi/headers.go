package httpapi

import "net/http"

// Header fields of our own. All are sent in this spelling and read in any.
const (
	headerRequest       = "x-ms-request-id"        // of every answer
	headerClientRequest = "x-ms-client-request-id" // of a request, returned
	headerErrorCode     = "x-ms-error-code"        // of a problem, its code
	headerSession       = "x-ms-session-token"     // both ways
	headerContinuation  = "x-continuation-token"   // both ways

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

// single returns a header that may occur once. Two of them could contradict
// each other, so they are refused.
func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) > 1 {
		return "", badRequest("repeated_header", "the header "+name+" must be given once")
	}
	return h.Get(name), nil
}
