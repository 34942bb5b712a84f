package cosmos

import (
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/infrastructure/store/unitofwork"
)

// Options tune how aggregates are stored. Nil and zero values are the defaults.
type Options = unitofwork.Options

// CodeOutcomeUnknown is the code of an Unavailable fault after which the change may be stored
// or not.
const CodeOutcomeUnknown = unitofwork.CodeOutcomeUnknown

// maxTTL is the longest time to live (REST reference, "Time to live").
const maxTTL = 2147483647 * time.Second

// withDefaults returns o with all values set, or an error that names each lifetime that is too
// long.
func withDefaults(o *Options) (Options, error) {
	given := o.WithDefaults()
	return given, errors.Join(
		checkTTL("EventTTL", given.EventTTL), checkTTL("DeletedTTL", given.DeletedTTL),
		checkTTL("RequestTTL", given.RequestTTL), checkTTL("AuditTTL", given.AuditTTL),
	)
}

func checkTTL(name string, ttl time.Duration) error {
	if ttl <= maxTTL {
		return nil
	}
	return fmt.Errorf("cosmos: %s is longer than the store can count, %s", name, maxTTL)
}

// PartitionKeyPath is the partition key path of the data container.
const PartitionKeyPath = "/partitionKey"

// partitionKeyOf returns the partition key of an aggregate, its events and its notes.
func partitionKeyOf(id uuid.UUID) string { return id.String() }

func keyValue(partitionKey string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(partitionKey)
}
