package cosmos

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"feedbox/infrastructure/store/cosmos/internal/store"
)

// maxRegionRefusals is the number of refusals of one request by a region before the request
// fails. azcosmos waits a second after each and retries 120 times (cosmos_client_retry_policy.go),
// which is longer than any caller waits: its deadline ends the request, and hides that nothing
// was written. Two retries are enough to reach a region that the account already advertises.
const maxRegionRefusals = 3

// regionPolicy ends the retries of azcosmos during a failover. It runs for each of them.
type regionPolicy struct{}

// regionRefusals counts the refusals of one request.
type regionRefusals int

// Do implements policy.Policy.
func (regionPolicy) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil || !store.RefusedByRegion(resp.StatusCode, resp) {
		return resp, err
	}
	var count regionRefusals
	req.OperationValue(&count)
	count++
	req.SetOperationValue(count)
	if count < maxRegionRefusals {
		return resp, nil
	}
	return nil, refusalError{runtime.NewResponseError(resp)}
}

// refusalError is not retried by azcore.
type refusalError struct{ error }

// NonRetriable implements the interface that azcore looks for.
func (refusalError) NonRetriable() {}

// Unwrap returns the *azcore.ResponseError.
func (e refusalError) Unwrap() error { return e.error }
