package cosmosfeed

import (
	"bytes"
	"context"
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

// exchange is one feed read, known to the policy through the context.
type exchange struct {
	rng      changefeed.FeedRange
	physical *physicalRanges
	seen     sighting
	body     *[]byte // the last reply's, if the policy took it; from buffers
}

type exchangeKey struct{}

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
	x, _ := req.Raw().Context().Value(exchangeKey{}).(*exchange)
	header := req.Raw().Header
	if x == nil || header.Get("A-IM") == "" || header.Get(headerRangeID) == "" {
		return req.Next()
	}
	if x.narrow(header.Get(headerRangeID)) {
		header.Set(headerReadKeyType, epkRangeRead)
		header.Set(headerStartEPK, x.rng.Min)
		header.Set(headerEndEPK, x.rng.Max)
	}
	if since := header.Get(headerIfModifiedSince); strings.HasSuffix(since, " UTC") {
		header.Set(headerIfModifiedSince, strings.TrimSuffix(since, "UTC")+"GMT")
	}
	recycle(x.body)
	x.body = nil
	runtime.SkipBodyDownload(req)
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	return resp, x.take(resp)
}

// narrow reports whether what is read is known to be more than the range. That a
// sighting may yet prove wrong does no harm: then its reply is not used.
func (x *exchange) narrow(id string) bool {
	read, known := x.physical.bounds(id)
	if !known && id == x.seen.id {
		read, known = x.seen.bounds, true
	}
	return known && !x.rng.Contains(read)
}

// take reads the body into the exchange and leaves the SDK one that only tells
// that there are documents.
func (x *exchange) take(resp *http.Response) error {
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
	x.body = b
	resp.Body = io.NopCloser(strings.NewReader(`{"_rid":"","Documents":[],"_count":1}`))
	return nil
}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}
