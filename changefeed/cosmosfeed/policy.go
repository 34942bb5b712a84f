package cosmosfeed

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// ClientOptions returns a copy of o with more policies. Nil o is the defaults. Give the result
// to one client only. With these options a client whose first request fails works again as soon
// as the service does; without them azcosmos returns the error for five minutes (account.go).
// A Feed works with any client. With these options its reads also
//
//   - carry the range as x-ms-start-epk and x-ms-end-epk if it is a part of a
//     physical one, so that the service need not send documents of other leases
//     (after a merge of physical partitions, or with a narrow scope). If the service
//     refuses them, the client reads without them from then on,
//   - write If-Modified-Since in the form HTTP requires,
//   - are decoded in one pass over a reused buffer, instead of by the SDK.
//
// Other requests are unchanged. ClientOptions may be applied to its own result.
func ClientOptions(o *azcosmos.ClientOptions) *azcosmos.ClientOptions {
	var c azcosmos.ClientOptions
	if o != nil {
		c = *o
	}
	a := &account{}
	c.PerCallPolicies = slices.Concat([]policy.Policy{accountPolicy{a}}, others(c.PerCallPolicies), []policy.Policy{feedPolicy{unbounded: new(atomic.Bool)}})
	c.PerRetryPolicies = slices.Concat([]policy.Policy{refreshPolicy{a}}, others(c.PerRetryPolicies))
	return &c
}

// others returns the policies that are not those of ClientOptions.
func others(all []policy.Policy) []policy.Policy {
	return slices.DeleteFunc(slices.Clone(all), func(p policy.Policy) bool {
		switch p.(type) {
		case accountPolicy, refreshPolicy, feedPolicy:
			return true
		}
		return false
	})
}

// Headers of a read limited to effective partition keys (as in the .NET SDK's
// RequestInvokerHandler), and the rewritten ones.
const (
	headerStartEPK        = "x-ms-start-epk"
	headerEndEPK          = "x-ms-end-epk"
	headerReadKeyType     = "x-ms-read-key-type"
	headerIfModifiedSince = "If-Modified-Since"
	headerRangeID         = "x-ms-documentdb-partitionkeyrangeid"
	headerFeedMode        = "A-IM"
	headerFeedFormat      = "x-ms-cosmos-changefeed-wire-format-version"
	feedVersions          = "Full-Fidelity Feed"
	feedFormat            = "2021-09-15"
	epkRangeRead          = "EffectivePartitionKeyRange"
)

// feedRead is one request for a page. The policy finds it in the context.
type feedRead struct {
	*Feed
	about  *about // of the container when the read began
	req    changefeed.ReadRequest
	seen   seenRange
	source string  // id of the physical range that replied; "" if the reply does not name it
	charge float64 // of the reply
	body   *[]byte // the last reply's body, if the policy took it; from buffers
	sent   bool    // through the policy
}

type feedReadKey struct{}

// buffers are reply bodies for reuse.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 256<<10); return &b }}

// maxPooled keeps a rare huge page from staying in memory.
const maxPooled = 8 << 20

func recycle(b *[]byte) {
	if b != nil && cap(*b) <= maxPooled {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// feedPolicy changes only the feed read itself, because the SDK sends metadata requests
// with the same context.
type feedPolicy struct {
	unbounded *atomic.Bool // the service has refused the bounds of a range
}

func (p feedPolicy) Do(req *policy.Request) (*http.Response, error) {
	r, _ := req.Raw().Context().Value(feedReadKey{}).(*feedRead)
	header := req.Raw().Header
	if r == nil || header.Get(headerFeedMode) == "" || header.Get(headerRangeID) == "" {
		return req.Next()
	}
	if r.sent = true; r.versions {
		header.Set(headerFeedMode, feedVersions)
		header.Set(headerFeedFormat, feedFormat)
	}
	bounded := r.isPart(header.Get(headerRangeID)) && !p.unbounded.Load()
	if bounded {
		header.Set(headerReadKeyType, epkRangeRead)
		header.Set(headerStartEPK, r.req.Range.Min)
		header.Set(headerEndEPK, r.req.Range.Max)
	}
	if since := header.Get(headerIfModifiedSince); strings.HasSuffix(since, " UTC") {
		header.Set(headerIfModifiedSince, strings.TrimSuffix(since, "UTC")+"GMT")
	}
	runtime.SkipBodyDownload(req)
	resp, err := req.Next()
	if bounded && err == nil && resp.StatusCode == http.StatusBadRequest {
		runtime.Drain(resp)
		resp, err = p.withoutBounds(req)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	return resp, r.takeBody(resp)
}

// withoutBounds repeats a refused read without bounds, because the service may refuse them beside
// a range id. The filter of the feed drops the documents of other leases in any case. If the
// repetition succeeds, the bounds were the reason, and the client does not send them again.
func (p feedPolicy) withoutBounds(req *policy.Request) (*http.Response, error) {
	header := req.Raw().Header
	for _, name := range []string{headerReadKeyType, headerStartEPK, headerEndEPK} {
		header.Del(name)
	}
	resp, err := req.Next()
	if err == nil && resp.StatusCode < http.StatusBadRequest {
		p.unbounded.Store(true)
	}
	return resp, err
}

// isPart reports whether the physical range is known to be larger than the range of the
// request. A wrong guess from r.seen is harmless, because then the reply is not used.
func (r *feedRead) isPart(id string) bool {
	read, known := r.bounds(id)
	if !known && id == r.seen.id {
		read, known = r.seen.bounds, true
	}
	return known && !r.req.Range.Contains(read)
}

// takeBody reads the body into the read. It leaves the SDK a body that only shows that
// there are documents, because the SDK would otherwise decode them, too.
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
