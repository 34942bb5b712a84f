package cosmos

import (
	"context"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// accountTimeout bounds a read of the account's properties with its retries. It is longer than one try.
const accountTimeout = 15 * time.Second

// accountLimit is a policy that bounds reads of the account's properties. Until the first one succeeds,
// azcosmos makes every request wait for it, without the deadline of the request and for up to 60 s
// (cosmos_global_endpoint_manager_policy.go). A write of a lease could then end after the lease.
type accountLimit struct{}

// Do implements policy.Policy.
func (accountLimit) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if raw.Method != http.MethodGet || raw.URL.Path != "" && raw.URL.Path != "/" {
		return req.Next()
	}
	ctx, cancel := context.WithTimeout(raw.Context(), accountTimeout)
	defer cancel() // the pipeline has read the body
	return req.Clone(ctx).Next()
}
