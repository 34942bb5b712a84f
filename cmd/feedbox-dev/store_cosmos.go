package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/infrastructure/process/config"
)

// emulatedCosmos is the Cosmos DB emulator.
type emulatedCosmos struct{}

func emulatedStore(u *url.URL, _ []string) store {
	if u.String() != "" {
		return nil
	}
	return emulatedCosmos{}
}

// variables returns no address, because the emulator runs with any store and its variables
// are in endpoints.variables.
func (emulatedCosmos) variables(*endpoints) []string {
	return []string{"FEEDBOX_STORE", config.StoreCosmos}
}

func (emulatedCosmos) rows(e *endpoints) []string {
	return []string{"Cosmos DB emulator", strings.TrimSuffix(e.CosmosEndpoint, "/")}
}

func (emulatedCosmos) documents(ctx context.Context, e *endpoints, visit func(raw []byte) error) error {
	for _, name := range []string{e.Container, e.Parked} {
		container, err := e.openContainer(name)
		if err != nil {
			return err
		}
		pages := container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return fmt.Errorf("container %s: %w", name, err)
			}
			for _, raw := range page.Items {
				if err := visit(raw); err != nil {
					return fmt.Errorf("container %s: %w", name, err)
				}
			}
		}
	}
	return nil
}

func (emulatedCosmos) poison(ctx context.Context, e *endpoints, more int) (key, id string, err error) {
	container, err := e.openContainer(e.Container)
	if err != nil {
		return "", "", err
	}
	key, id = uuid.NewString(), uuid.NewString()
	for n := range 1 + more {
		event, action := id, ""
		if n > 0 {
			event, action = uuid.NewString(), `"action":"ContactUpdatedEvent",`
		}
		document := fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{%s"contactId":%q,"id":%q,"createdAt":%q,"aggregateVersion":%d,"sequence":%d},"ttl":864000}`,
			event, key, action, key, event, time.Now().UTC().Format(time.RFC3339Nano), n+1, n+1)
		if _, err := container.CreateItem(ctx, azcosmos.NewPartitionKeyString(key), document, nil); err != nil {
			return "", "", fmt.Errorf("store the event: %w", err)
		}
	}
	return key, id, nil
}

// openContainer returns a client of a container of the emulator, without I/O.
func (e *endpoints) openContainer(name string) (*azcosmos.ContainerClient, error) {
	credential, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		return nil, err
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, credential, nil)
	if err != nil {
		return nil, err
	}
	return client.NewContainer(e.Database, name)
}
