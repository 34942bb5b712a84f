package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
)

// PartitionKeyPath is the partition key path of the data container.
const PartitionKeyPath = "/partitionKey"

// partitionKeyOf returns the partition key of an aggregate, its events and its notes.
func partitionKeyOf(id uuid.UUID) string { return id.String() }

func keyValue(partitionKey string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(partitionKey)
}
