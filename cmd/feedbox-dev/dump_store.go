package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/verify"
)

// dumpStore writes the contacts, events and parked events to a file and returns their
// count.
func dumpStore(ctx context.Context, e *endpoints, path string) (n int, err error) {
	if e.PostgresURL != "" {
		return dumpDatabase(ctx, e.PostgresURL, path)
	}
	credential, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		return 0, err
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, credential, nil)
	if err != nil {
		return 0, err
	}
	file, err := createRecords(path)
	if err != nil {
		return 0, err
	}
	err = errors.Join(
		dumpContainer(ctx, client, e.Database, e.Container, file),
		dumpContainer(ctx, client, e.Database, e.Parked, file),
		file.close())
	return file.count, err
}

// dumpContainer writes down all documents of a container, of all partitions, that verify
// has a use for.
func dumpContainer(ctx context.Context, client *azcosmos.Client, database, name string, file *recordFile) error {
	container, err := client.NewContainer(database, name)
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
			d, err := verify.DecodeDocument(raw)
			if err != nil {
				return fmt.Errorf("container %s: %w", name, err)
			}
			if d.Kind != verify.KindOther {
				file.add(storeRecord(d))
			}
		}
	}
	return nil
}
