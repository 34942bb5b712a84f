package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
)

// PartitionKeyPath is the partition key path of the data container.
const PartitionKeyPath = "/partitionKey"

// partitionKeyOf returns the partition key of an aggregate and of all that belongs
// to it. This is the one place that chooses it.
func partitionKeyOf(id uuid.UUID) string { return id.String() }

// keyValue returns a partition key as the SDK wants it.
func keyValue(partitionKey string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(partitionKey)
}
