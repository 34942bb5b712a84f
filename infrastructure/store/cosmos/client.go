package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// ClientConfig is the address of a Cosmos DB account and its credentials.
type ClientConfig struct {
	// Endpoint is the account's URL, such as https://contoso.documents.azure.com:443/.
	Endpoint string
	// Key is the account key. Either it or Credential is given.
	Key string
	// Credential authenticates against Microsoft Entra ID.
	Credential azcore.TokenCredential
	// PreferredRegions are tried in this order for reads.
	PreferredRegions []string
	// Options configure the HTTP pipeline: transport, retries, telemetry. Defaults:
	// application id "feedbox"; 10 s for an answer; 3 retries of throttled reads, each after
	// at most 2 s. The limit of 10 s is needed because azcosmos has none, and a connection
	// that a firewall has dropped stays silent; azcosmos does not retry then, see
	// cosmos_client_retry_policy.go. It includes the body; a page of 4 MB needs 3.4 Mbit/s.
	// Commits have their own retries, see Options. A region that refuses requests during a
	// failover is tried three times.
	Options azcore.ClientOptions
}

// NewClient returns a client of the account, for commands, readers, feeds and inboxes. It connects
// with the first request. If that fails, the next ones succeed as soon as the account replies: it
// has the policies of cosmosfeed.ClientOptions.
func NewClient(c ClientConfig) (*azcosmos.Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	options := &azcosmos.ClientOptions{ClientOptions: c.Options, PreferredRegions: c.PreferredRegions}
	options.Telemetry.ApplicationID = cmp.Or(options.Telemetry.ApplicationID, "feedbox")
	options.Retry.TryTimeout = cmp.Or(options.Retry.TryTimeout, 10*time.Second)
	options.Retry.MaxRetries = cmp.Or(options.Retry.MaxRetries, 3)
	options.Retry.MaxRetryDelay = cmp.Or(options.Retry.MaxRetryDelay, 2*time.Second)
	options.Retry.RetryDelay = cmp.Or(options.Retry.RetryDelay, 100*time.Millisecond)
	options.PerRetryPolicies = append(slices.Clone(options.PerRetryPolicies), regionPolicy{})
	options = cosmosfeed.ClientOptions(options)
	if c.Key == "" {
		client, err := azcosmos.NewClient(c.Endpoint, credential{c.Credential}, options)
		if err != nil {
			return nil, fmt.Errorf("cosmos client of %s: %w", c.Endpoint, err)
		}
		return client, nil
	}
	key, err := azcosmos.NewKeyCredential(c.Key)
	if err != nil {
		return nil, errors.New("cosmos client: the key is not base64") // the cause would show it
	}
	client, err := azcosmos.NewClientWithKey(c.Endpoint, key, options)
	if err != nil {
		return nil, fmt.Errorf("cosmos client of %s: %w", c.Endpoint, err)
	}
	return client, nil
}

// credential marks its errors, because they prove that nothing was written.
type credential struct{ azcore.TokenCredential }

// GetToken implements azcore.TokenCredential.
func (c credential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.TokenCredential.GetToken(ctx, o)
	if err != nil {
		err = &store.CredentialError{Err: err}
	}
	return token, err
}

func (c ClientConfig) validate() error {
	var faults []error
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "https" && endpoint.Scheme != "http") {
		faults = append(faults, fmt.Errorf("cosmos client: the endpoint %q is not an http(s) URL", c.Endpoint))
	}
	if (c.Key == "") == (c.Credential == nil) {
		faults = append(faults, errors.New("cosmos client: give either a key or a credential"))
	}
	return errors.Join(faults...)
}
