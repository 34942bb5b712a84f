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
	headerBatchContinue   = "X-Ms-Cosmos-Batch-Continue-On-Error"
	headerConsistency     = "X-Ms-Consistency-Level"
	headerBodyFormat      = "X-Ms-Documentdb-Content-Serialization-Format"
	headerContentFormat   = "X-Ms-Cosmos-Supported-Serialization-Formats"
	headerDirection       = "X-Ms-Enumeration-Direction"
	headerIndexing        = "X-Ms-Indexing-Directive"
	headerQuota           = "X-Ms-Documentdb-Populatequotainfo"
	headerTokenLimit      = "X-Ms-Documentdb-Responsecontinuationtokenlimitinkb"
	headerVersion         = "X-Ms-Version"
	headerContentLength   = "Content-Length"
	headerContentType     = "Content-Type"
	headerContinuation    = "X-Ms-Continuation"
	headerCrossPartition  = "X-Ms-Documentdb-Query-Enablecrosspartition"
	headerDate            = "X-Ms-Date"
	headerExpirySeconds   = "X-Ms-Documentdb-Expiry-Seconds"
	headerFeedFormat      = "X-Ms-Cosmos-Changefeed-Wire-Format-Version"
	headerEnableScan      = "X-Ms-Documentdb-Query-Enable-Scan"
	headerEndEPK          = "X-Ms-End-Epk"
	headerHTTPDate        = "Date"
	headerIfMatch         = "If-Match"
	headerIfModifiedSince = "If-Modified-Since"
	headerIfNoneMatch     = "If-None-Match"
	headerIntendedRID     = "X-Ms-Cosmos-Intended-Collection-Rid"
	headerIsBatch         = "X-Ms-Cosmos-Is-Batch-Request"
	headerIsQuery         = "X-Ms-Documentdb-Query"
	headerIsQueryJS       = "X-Ms-Documentdb-Isquery"
	headerIsQueryPlan     = "X-Ms-Cosmos-Is-Query-Plan-Request"
	headerIsUpsert        = "X-Ms-Documentdb-Is-Upsert"
	headerMaxItemCount    = "X-Ms-Max-Item-Count"
	headerOfferThroughput = "X-Ms-Offer-Throughput"
	headerPartitionKey    = "X-Ms-Documentdb-Partitionkey"
	headerPopulateIndex   = "X-Ms-Cosmos-Populateindexmetrics"
	headerPostTrigger     = "X-Ms-Documentdb-Post-Trigger-Include"
	headerPrefer          = "Prefer"
	headerPreTrigger      = "X-Ms-Documentdb-Pre-Trigger-Include"
	headerQueryFeatures   = "X-Ms-Cosmos-Supported-Query-Features"
	headerRangeID         = "X-Ms-Documentdb-Partitionkeyrangeid"
	headerReadKeyType     = "X-Ms-Read-Key-Type"
	headerSessionToken    = "X-Ms-Session-Token"
	headerStartEPK        = "X-Ms-Start-Epk"
)

// Names of reply headers, spelled as on the wire: in lower case, as the service writes
// them, because the .NET SDK compares some of them by exact spelling.
const (
	replyActivityID     = "x-ms-activity-id"
	replyAltContentPath = "x-ms-alt-content-path"
	replyContentPath    = "x-ms-content-path"
	replyLocation       = "content-location"
	replyContinuation   = "x-ms-continuation"
	replyETag           = "etag"
	replyIndexMetrics   = "x-ms-cosmos-index-utilization"
	replyDuration       = "x-ms-request-duration-ms"
	replyItemCount      = "x-ms-item-count"
	replyItemLSN        = "x-ms-item-lsn"
	replyLSN            = "lsn"
	replyMinThroughput  = "x-ms-cosmos-min-throughput"
	replyIndexProgress  = "x-ms-documentdb-collection-index-transformation-progress"
	replyQueryMetrics   = "x-ms-documentdb-query-metrics"
	replyQuota          = "x-ms-resource-quota"
	replyRangeID        = "x-ms-documentdb-partitionkeyrangeid"
	replyRequestCharge  = "x-ms-request-charge"
	replyRetryAfter     = "x-ms-retry-after-ms"
	replySessionToken   = "x-ms-session-token"
	replySubstatus      = "x-ms-substatus"
	replyUsage          = "x-ms-resource-usage"

	replyGatewayVersion = "x-ms-gatewayversion"
	replyServiceVersion = "x-ms-serviceversion"
	replyReadRegions    = "x-ms-number-of-read-regions"
	replyStateChange    = "x-ms-last-state-change-utc"
	replyLocalLSN       = "x-ms-cosmos-llsn"
	replyAckedLSN       = "x-ms-quorum-acked-lsn"
	replyAckedLocalLSN  = "x-ms-cosmos-quorum-acked-llsn"
	replyCommittedLSN   = "x-ms-global-committed-lsn"
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
