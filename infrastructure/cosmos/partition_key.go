package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
)

// PartitionKeyPath is the partition key path of the container of contacts.
const PartitionKeyPath = "/partitionKey"

// partitionKeyOf returns the partition key of a contact and of all that belongs
// to it. This is the one place that chooses it.
func partitionKeyOf(contactID uuid.UUID) string { return contactID.String() }

// keyValue returns a partition key as the SDK wants it.
func keyValue(partitionKey string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(partitionKey)
}
