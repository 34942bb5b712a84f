package httpapi

// Header fields of our own. All are sent in this spelling and read in any.
const (
	headerRequest       = "x-ms-request-id"        // of every answer
	headerClientRequest = "x-ms-client-request-id" // of a request, returned
	headerErrorCode     = "x-ms-error-code"        // of a problem, its code
	headerSession       = "x-ms-session-token"     // both ways
	headerContinuation  = "x-continuation-token"   // both ways
)

// queryContinuation carries the continuation token in a link.
const queryContinuation = "continuationToken"

// Media types.
const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// maxClientRequestID is the longest id of a client that is returned.
const maxClientRequestID = 128
