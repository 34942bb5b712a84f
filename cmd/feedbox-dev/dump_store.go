package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// storedDocument are the members of a document that verify needs.
type storedDocument struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Type         string `json:"type"`
	Data         struct {
		Action           string `json:"action"`
		Version          int64  `json:"version"`
		AggregateVersion int64  `json:"aggregateVersion"`
		Sequence         int64  `json:"sequence"`
	} `json:"data"`
}

// skippedPrefix begins the id of the record of an event that an operator skipped.
const skippedPrefix = "$skipped-"

// dumpStore writes the contacts, events and parked events to a file and returns their
// count.
func dumpStore(ctx context.Context, e *endpoints, path string) (n int, err error) {
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
		eachDocument(ctx, client, e.Database, e.Container, func(d *storedDocument) {
			switch d.Type {
			case "contact":
				file.add(storeRecord{Kind: kindContact, ID: d.ID, Version: d.Data.Version, Sequence: d.Data.Sequence})
			case "domainEvent":
				file.add(storeRecord{Kind: kindEvent, ID: d.ID, Key: d.PartitionKey, Action: d.Data.Action, Version: d.Data.AggregateVersion, Sequence: d.Data.Sequence})
			}
		}),
		eachDocument(ctx, client, e.Database, e.Parked, func(d *storedDocument) {
			switch d.Type {
			case "parkedEvent", "skippedEvent":
				file.add(storeRecord{Kind: kindParked, ID: strings.TrimPrefix(d.ID, skippedPrefix)})
			}
		}),
		file.close())
	return file.count, err
}

// eachDocument reads all documents of a container, of all partitions.
func eachDocument(ctx context.Context, client *azcosmos.Client, database, name string, use func(*storedDocument)) error {
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
			var d storedDocument
			if err := json.Unmarshal(raw, &d); err != nil {
				return fmt.Errorf("container %s: a document is not as the service writes it: %w", name, err)
			}
			use(&d)
		}
	}
	return nil
}
