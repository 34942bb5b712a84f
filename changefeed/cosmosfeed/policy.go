package cosmosfeed

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// ClientOptions returns options for an azcosmos client that reads feeds better,
// a copy of o with one more policy; nil o is the defaults. A Feed works with any
// client. With these options its reads also
//
//   - carry the range as x-ms-start-epk and x-ms-end-epk if it is a part of a
//     physical one, so that the service need not send what the range does not hold
//     (after a merge of physical partitions, or with a narrow scope),
//   - write If-Modified-Since in the form HTTP asks for,
//   - are decoded in one pass over a reused buffer, in place of the SDK's decoding.
//
// Requests of other kinds pass unchanged.
func ClientOptions(o *azcosmos.ClientOptions) *azcosmos.ClientOptions {
	var c azcosmos.ClientOptions
	if o != nil {
		c = *o
	}
	c.PerCallPolicies = append(append([]policy.Policy(nil), c.PerCallPolicies...), feedPolicy{})
	return &c
}

// Headers of a read limited to effective partition keys (the .NET SDK's
// RequestInvokerHandler), and those rewritten here.
const (
	headerStartEPK        = "x-ms-start-epk"
	headerEndEPK          = "x-ms-end-epk"
	headerReadKeyType     = "x-ms-read-key-type"
	headerIfModifiedSince = "If-Modified-Since"
	headerRangeID         = "x-ms-documentdb-partitionkeyrangeid"
	epkRangeRead          = "EffectivePartitionKeyRange"
)

// feedRead is one request for a page, known to the policy through the context.
type feedRead struct {
	*Feed
	req    changefeed.ReadRequest
	seen   seenRange
	source string  // id of the physical range that replied; "" if the reply does not tell
	charge float64 // of the reply
	body   *[]byte // the last reply's, if the policy took it; from buffers
}

type feedReadKey struct{}

// buffers are reply bodies that may be used again.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 256<<10); return &b }}

// maxPooled keeps a rare huge page from staying in memory.
const maxPooled = 8 << 20

func recycle(b *[]byte) {
	if b != nil && cap(*b) <= maxPooled {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// feedPolicy acts on the feed read itself only: the SDK sends requests for
// metadata with the same context.
type feedPolicy struct{}

func (feedPolicy) Do(req *policy.Request) (*http.Response, error) {
	r, _ := req.Raw().Context().Value(feedReadKey{}).(*feedRead)
	header := req.Raw().Header
	if r == nil || header.Get("A-IM") == "" || header.Get(headerRangeID) == "" {
		return req.Next()
	}
	if r.isPart(header.Get(headerRangeID)) {
		header.Set(headerReadKeyType, epkRangeRead)
		header.Set(headerStartEPK, r.req.Range.Min)
		header.Set(headerEndEPK, r.req.Range.Max)
	}
	if since := header.Get(headerIfModifiedSince); strings.HasSuffix(since, " UTC") {
		header.Set(headerIfModifiedSince, strings.TrimSuffix(since, "UTC")+"GMT")
	}
	runtime.SkipBodyDownload(req)
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	return resp, r.takeBody(resp)
}

// isPart reports whether what is read is known to be more than the range. That a
// range seen may yet prove another does no harm: then its reply is not used.
func (r *feedRead) isPart(id string) bool {
	read, known := r.bounds(id)
	if !known && id == r.seen.id {
		read, known = r.seen.bounds, true
	}
	return known && !r.req.Range.Contains(read)
}

// takeBody reads the body into the read and leaves the SDK one that only tells
// that there are documents.
func (r *feedRead) takeBody(resp *http.Response) error {
	b, _ := buffers.Get().(*[]byte)
	buf := bytes.NewBuffer((*b)[:0])
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(min(n, maxPooled)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	*b = buf.Bytes()
	if err != nil {
		recycle(b)
		return fmt.Errorf("read the page: %w", err)
	}
	r.body = b
	resp.Body = io.NopCloser(strings.NewReader(`{"_rid":"","Documents":[],"_count":1}`))
	return nil
}
