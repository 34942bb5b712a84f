package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
)

// credential returns the identity of the process in Azure: a managed identity
// there, the developer's login on a laptop. It does no I/O.
func (s Surroundings) credential() (azcore.TokenCredential, error) {
	if s.Credential != nil {
		return s.Credential, nil
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("azure credential: %w", err)
	}
	return credential, nil
}

// cosmosClient connects with the key if one is configured, else with the identity
// of the process. Spans go to spans, whose zero value takes none; perCall policies run
// once per call of the SDK.
func (s Surroundings) cosmosClient(cfg config.Cosmos, spans tracing.Provider, perCall ...policy.Policy) (*azcosmos.Client, error) {
	c := cosmos.ClientConfig{Endpoint: cfg.Endpoint, Key: cfg.Key.Reveal()}
	c.Options.Transport = s.CosmosTransport
	c.Options.TracingProvider = spans
	c.Options.PerCallPolicies = perCall
	if !cfg.Key.IsSet() {
		var err error
		if c.Credential, err = s.credential(); err != nil {
			return nil, err
		}
	}
	return cosmos.NewClient(c)
}

// dataContainer, leasesContainer and parkedContainer say what each container has
// to be like; the deployment creates them, the service only verifies.
func dataContainer(cfg config.Cosmos) cosmos.ContainerSpec {
	return cosmos.ContainerSpec{ID: cfg.Container, PartitionKeyPath: "/partitionKey", TTL: true}
}

func leasesContainer(cfg config.Cosmos) cosmos.ContainerSpec {
	return cosmos.ContainerSpec{ID: cfg.Leases, PartitionKeyPath: "/id"}
}

func parkedContainer(cfg config.Cosmos) cosmos.ContainerSpec {
	return cosmos.ContainerSpec{ID: cfg.Parked, PartitionKeyPath: "/partitionKey"}
}

// containers are those that process uses.
func containers(process Process, cfg config.Cosmos) []cosmos.ContainerSpec {
	if process == ProcessAPI {
		return []cosmos.ContainerSpec{dataContainer(cfg)}
	}
	return []cosmos.ContainerSpec{dataContainer(cfg), leasesContainer(cfg), parkedContainer(cfg)}
}

// verify is the check at the start of process: it refuses what its promises do not hold on.
func verify(ctx context.Context, process Process, cfg config.Cosmos, client *azcosmos.Client, account *cosmos.Account) error {
	err := cosmos.Verify(ctx, client, cfg.Database, containers(process, cfg)...)
	return errors.Join(account.Verify(), err)
}
