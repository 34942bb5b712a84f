package azure

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Redirect returns a policy that sends the requests of a client to another base URL. The SDK expects the
// management API of Service Bus at the address of the broker; an emulator has it elsewhere.
func Redirect(base string) (policy.Policy, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not a URL", base)
	}
	return redirect{u}, nil
}

type redirect struct{ base *url.URL }

// Do implements policy.Policy.
func (r redirect) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	raw.URL.Scheme, raw.URL.Host, raw.Host = r.base.Scheme, r.base.Host, r.base.Host
	return req.Next()
}
