package cosmosfeed

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// azcosmos reads the properties of the account before the first request of a client, and every
// five minutes later. If the first read fails, all requests return its error until five minutes
// later (cosmos_global_endpoint_manager.go), although the account may be back after seconds. The
// two policies of an account remove that:
//
//	failed account read, none succeeded before ──▶ accountPolicy replies {}, so azcosmos sends
//	    the request to the client's endpoint, where it succeeds or fails by its own
//	a request refreshAfter or more later       ──▶ refreshPolicy replies 403/1008 once, so azcosmos
//	    reads the account again and repeats the request a second later
//
// After a successful read, failures reach azcosmos, which then keeps the regions that it knows.
type account struct {
	mu     sync.Mutex // guards the fields below
	known  bool       // a read succeeded
	failed time.Time  // end of the last failed read; zero if there is none
}

// accountTimeout bounds a read of the account with its retries. Without it, the first request of a
// client can wait 60 s, also after the deadline of its caller. It is short because a failed read
// costs little: the regions are unknown for some seconds.
const accountTimeout = 5 * time.Second

// refreshAfter is the least pause between reads of an account that is not known. It is longer
// than the least pause that azcosmos makes between them, 2 s (cosmos_client_retry_policy.go).
const refreshAfter = 5 * time.Second

// accountPolicy runs once per call. It must be the outermost policy, because the others may
// observe replies and should see the failure.
type accountPolicy struct{ *account }

func (p accountPolicy) Do(req *policy.Request) (*http.Response, error) {
	if !readsAccount(req.Raw()) {
		return req.Next()
	}
	ctx, cancel := context.WithTimeout(req.Raw().Context(), accountTimeout)
	defer cancel() // the pipeline has read the body
	resp, err := req.Clone(ctx).Next()
	if p.note(err == nil && describesAccount(resp)) {
		return resp, err
	}
	return reply(req, http.StatusOK, "{}"), nil
}

// note records the end of a read of the account. It reports whether azcosmos can use its result.
func (a *account) note(succeeded bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = a.known || succeeded
	a.failed = time.Now()
	return a.known
}

// describesAccount is false for a failure, and for the page of a proxy.
func describesAccount(resp *http.Response) bool {
	if resp.StatusCode != http.StatusOK {
		return false
	}
	body, err := runtime.Payload(resp) // can be read again
	return err == nil && json.Unmarshal(body, &struct{}{}) == nil
}

// refreshPolicy runs for each attempt of a call. It must be the outermost policy of these, because
// its reply is none of the service.
type refreshPolicy struct{ *account }

func (p refreshPolicy) Do(req *policy.Request) (*http.Response, error) {
	if readsAccount(req.Raw()) || !p.due() {
		return req.Next()
	}
	resp := reply(req, http.StatusForbidden, "")
	resp.Header.Set("x-ms-substatus", "1008") // the account is not found at this endpoint
	return resp, nil
}

// due reports true to one request in each refreshAfter while the account is not known.
func (a *account) due() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known || a.failed.IsZero() || time.Since(a.failed) < refreshAfter {
		return false
	}
	a.failed = time.Now()
	return true
}

func readsAccount(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "" || r.URL.Path == "/")
}

func reply(req *policy.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req.Raw(),
	}
}
