package cosmos

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"feedbox/domain/fault"
	"feedbox/infrastructure/process/azure"
)

// Account records the properties of the account of a client. It is a per-call policy of the
// client (ClientConfig.Options) that reads the reply that azcosmos requests before its first
// request (cosmos_global_endpoint_manager.go), because the SDK has no call for it. That costs no
// extra request. The zero value is ready for use. It is safe for concurrent use.
type Account struct {
	mu     sync.Mutex // guards the fields below
	known  *accountProperties
	failed error // of the last read, while none has succeeded
}

// accountProperties are the used parts of the reply to GET /.
type accountProperties struct {
	ManyWriteRegions bool `json:"enableMultipleWriteLocations"`
	Policy           struct {
		Level string `json:"defaultConsistencyLevel"`
	} `json:"userConsistencyPolicy"`
	Regions []struct {
		Name     string `json:"name"`
		Endpoint string `json:"databaseAccountEndpoint"`
	} `json:"readableLocations"`
}

// weakLevels do not honour session tokens. A client cannot ask for a stronger level than the
// account's default.
var weakLevels = []string{"ConsistentPrefix", "Eventual"}

// Do implements policy.Policy.
func (a *Account) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if req.Raw().Method != http.MethodGet || len(req.Raw().URL.Path) > 1 {
		return resp, err
	}
	p, failed := readProperties(resp, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case failed == nil:
		a.known, a.failed = p, nil
	case a.known == nil:
		a.failed = failed
	}
	return resp, err
}

func readProperties(resp *http.Response, err error) (*accountProperties, error) {
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, runtime.NewResponseError(resp)
	}
	body, err := runtime.Payload(resp) // can be read again
	if err != nil {
		return nil, err
	}
	p := &accountProperties{}
	if err := json.Unmarshal(body, p); err != nil {
		return nil, err
	}
	if p.Policy.Level == "" {
		return nil, errors.New("the reply has no consistency level")
	}
	return p, nil
}

// Level returns the account's default consistency level, "" before the client's first request.
func (a *Account) Level() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		return ""
	}
	return a.known.Policy.Level
}

// Region returns the name of the region at a host, "" if the account does not list it.
func (a *Account) Region(host string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		return ""
	}
	for _, r := range a.known.Regions {
		if u, err := url.Parse(r.Endpoint); err == nil && u.Host == host {
			return r.Name
		}
	}
	return ""
}

// Verify reports everything that makes the account unusable. It returns nil before the client's
// first request, so it must be called after one. If the account could not be read yet, the error
// is fault.Unavailable; a request a few seconds later makes the client read it again.
//
// Below Session consistency, a new owner may not see which keys are parked and send their later
// events first, and a caller of the API may not see its own write. With several write regions,
// two owners may each win a lease, and the change feed is ordered only per region.
func (a *Account) Verify() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.failed != nil:
		return fault.Wrap(fault.Unavailable, "", "the properties of the account could not be read", errors.New(azure.Brief(a.failed)))
	case a.known == nil:
		return nil
	}
	var faults []error
	if level := a.known.Policy.Level; slices.Contains(weakLevels, level) {
		faults = append(faults, fmt.Errorf("the account's default consistency level is %s, it needs Session or stronger to keep the order of parked keys: az cosmosdb update --default-consistency-level Session", level))
	}
	if a.known.ManyWriteRegions {
		faults = append(faults, errors.New("the account writes in several regions, where leases and the order of events do not hold: az cosmosdb update --enable-multiple-write-locations false"))
	}
	return errors.Join(faults...)
}
