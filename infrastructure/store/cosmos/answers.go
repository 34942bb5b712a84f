package cosmos

import (
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Answers is a policy that calls the function after each request: with an error if the
// service did not answer, failed or refused the identity, else with nil. Any other refusal
// shows that the service works.
type Answers func(err error)

var _ policy.Policy = Answers(nil)

// Do implements policy.Policy.
func (note Answers) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	switch {
	case err != nil:
		note(err)
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		note(fmt.Errorf("the service answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	default:
		note(nil)
	}
	return resp, err
}
