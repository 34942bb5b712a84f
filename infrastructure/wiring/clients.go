package wiring

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/failpoint"
	"feedbox/infrastructure/store/cosmos"
)

// credential returns the Azure identity of the process: a managed identity in Azure, the
// developer's login on a laptop. It does no I/O.
func (p Params) credential() (azcore.TokenCredential, error) {
	if p.Credential != nil {
		return p.Credential, nil
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("azure credential: %w", err)
	}
	return credential, nil
}

// cosmosClient authenticates with the key if one is configured, otherwise with the identity
// of the process. A zero spans records no spans. The perCall policies run once per call of
// the SDK.
func (p Params) cosmosClient(cfg config.Cosmos, spans tracing.Provider, perCall ...policy.Policy) (*azcosmos.Client, error) {
	c := cosmos.ClientConfig{Endpoint: string(cfg.Endpoint), Key: cfg.Key.Reveal(), PreferredRegions: cfg.PreferredRegions}
	c.Options.Transport = p.CosmosTransport
	c.Options.TracingProvider = spans
	c.Options.PerCallPolicies = perCall
	if !cfg.Key.IsSet() {
		var err error
		if c.Credential, err = p.credential(); err != nil {
			return nil, err
		}
	}
	return cosmos.NewClient(c)
}

// serviceBusNamespace authenticates with the connection string if one is configured, otherwise
// with the identity of the process.
func (p Params) serviceBusNamespace(cfg config.ServiceBus) (servicebus.ClientConfig, error) {
	c := servicebus.ClientConfig{ConnectionString: cfg.ConnectionString.Reveal(), Namespace: cfg.Namespace, Dial: p.ServiceBusDial}
	if !cfg.ConnectionString.IsSet() {
		var err error
		if c.Credential, err = p.credential(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// failpointLeases is a lease store with failpoints around its writes. Only binaries for
// fault tests use it; see package failpoint.
type failpointLeases struct{ changefeed.LeaseStore }

// withFailpoints returns leases, in a binary for fault tests with failpoints.
func withFailpoints(leases changefeed.LeaseStore) changefeed.LeaseStore {
	if !failpoint.Armed {
		return leases
	}
	return failpointLeases{leases}
}

// Create implements changefeed.LeaseStore.
func (s failpointLeases) Create(ctx context.Context, r changefeed.Record) (etag string, err error) {
	failpoint.Here("lease-creating")
	etag, err = s.LeaseStore.Create(ctx, r)
	if err == nil {
		failpoint.Here("lease-created")
	}
	return etag, err
}

// Replace implements changefeed.LeaseStore.
func (s failpointLeases) Replace(ctx context.Context, r changefeed.Record) (etag string, err error) {
	etag, err = s.LeaseStore.Replace(ctx, r)
	if err == nil {
		failpoint.Here("lease-renewed")
	}
	return etag, err
}

// failpoints returns the failpoints of the processor, in a binary for fault tests.
func failpoints() *changefeed.Observer {
	if !failpoint.Armed {
		return nil
	}
	return &changefeed.Observer{
		BatchHandled:     func(changefeed.BatchHandled) { failpoint.Here("page-sent") },
		DocumentPoisoned: func(changefeed.DocumentPoisoned) { failpoint.Here("parked") },
	}
}
