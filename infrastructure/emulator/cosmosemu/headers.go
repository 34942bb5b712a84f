package cosmosemu

import "net/http"

// Header names in canonical form, so that they index http.Header directly.
// Source: cosmos_http_constants.go of azcosmos v1.5.0, constants.js of
// @azure/cosmos 4.9.3.
const (
	headerActivityID      = "X-Ms-Activity-Id"
	headerAIM             = "A-Im"
	headerAuthorization   = "Authorization"
	headerAutopilot       = "X-Ms-Cosmos-Offer-Autopilot-Settings"
	headerBatchAtomic     = "X-Ms-Cosmos-Batch-Atomic"
	headerContentLength   = "Content-Length"
	headerContentType     = "Content-Type"
	headerContinuation    = "X-Ms-Continuation"
	headerCrossPartition  = "X-Ms-Documentdb-Query-Enablecrosspartition"
	headerDate            = "X-Ms-Date"
	headerETag            = "Etag"
	headerEndEPK          = "X-Ms-End-Epk"
	headerHTTPDate        = "Date"
	headerIfMatch         = "If-Match"
	headerIfModifiedSince = "If-Modified-Since"
	headerIfNoneMatch     = "If-None-Match"
	headerIndexMetrics    = "X-Ms-Cosmos-Index-Utilization"
	headerIsBatch         = "X-Ms-Cosmos-Is-Batch-Request"
	headerIsQuery         = "X-Ms-Documentdb-Query"
	headerIsQueryJS       = "X-Ms-Documentdb-Isquery"
	headerIsQueryPlan     = "X-Ms-Cosmos-Is-Query-Plan-Request"
	headerIsUpsert        = "X-Ms-Documentdb-Is-Upsert"
	headerItemCount       = "X-Ms-Item-Count"
	headerMaxItemCount    = "X-Ms-Max-Item-Count"
	headerOfferThroughput = "X-Ms-Offer-Throughput"
	headerPartitionKey    = "X-Ms-Documentdb-Partitionkey"
	headerPopulateIndex   = "X-Ms-Cosmos-Populateindexmetrics"
	headerPrefer          = "Prefer"
	headerQueryMetrics    = "X-Ms-Documentdb-Query-Metrics"
	headerRangeID         = "X-Ms-Documentdb-Partitionkeyrangeid"
	headerReadKeyType     = "X-Ms-Read-Key-Type"
	headerRequestCharge   = "X-Ms-Request-Charge"
	headerRetryAfter      = "X-Ms-Retry-After-Ms"
	headerSessionToken    = "X-Ms-Session-Token"
	headerStartEPK        = "X-Ms-Start-Epk"
	headerSubstatus       = "X-Ms-Substatus"
)

// first returns the first value of a header given by its canonical name.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// isTrue reads a boolean header: SDKs write True and true.
func isTrue(h http.Header, name string) bool {
	switch first(h, name) {
	case "True", "true", "TRUE":
		return true
	}
	return false
}
