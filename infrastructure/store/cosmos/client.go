package cosmos

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// ClientConfig says how to reach a Cosmos DB account.
type ClientConfig struct {
	// Endpoint is the account's URL, such as https://contoso.documents.azure.com:443/.
	Endpoint string
	// Key is the account key. Either it or Credential is given.
	Key string
	// Credential authenticates against Microsoft Entra ID.
	Credential azcore.TokenCredential
	// PreferredRegions are tried in this order for reads.
	PreferredRegions []string
	// Options are those of the HTTP pipeline: transport, retries, telemetry. What
	// they leave open: application id "feedbox", 10 s for an answer (azcosmos has no
	// limit of its own, and a connection that a firewall has forgotten stays silent;
	// it does not try again then, see cosmos_client_retry_policy.go), 3 retries of throttled reads, each after at most 2 s. Commits have
	// their own retries, see Options.
	Options azcore.ClientOptions
}

// NewClient returns a client of the account. It connects with the first request;
// if that one fails, the client answers with its error for five minutes (azcosmos
// keeps the account's properties that long), so an emulator must be up first.
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
	if c.Key == "" {
		client, err := azcosmos.NewClient(c.Endpoint, c.Credential, options)
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
