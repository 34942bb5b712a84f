package cosmos

import (
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Answers is a policy that calls the function after each request: with an error if the
// service did not answer, failed or refused the identity, else with nil. Any other refusal
// shows that the service works.
type Answers func(err error)

// Do implements policy.Policy.
func (note Answers) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	switch {
	case err != nil:
		note(brief{err})
	case store.RefusedByRegion(resp.StatusCode, resp):
		note(fmt.Errorf("the region at %s refuses requests, as during a failover", req.Raw().URL.Host))
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		note(fmt.Errorf("the service answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	default:
		note(nil)
	}
	return resp, err
}

// brief is an error of the SDK whose text is one line. A failed reply would otherwise put its
// whole body, and the ids in its URL, into the probe that shows the error.
type brief struct{ error }

// Error returns the text in one line.
func (b brief) Error() string { return azure.Brief(b.error) }

// Unwrap returns the error of the SDK.
func (b brief) Unwrap() error { return b.error }
