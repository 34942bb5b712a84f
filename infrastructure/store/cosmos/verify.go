package cosmos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// ContainerSpec is what a container has to be like.
type ContainerSpec struct {
	// ID is the container's name.
	ID string
	// PartitionKeyPath is its only partition key path, such as /partitionKey.
	PartitionKeyPath string
	// TTL demands that documents may carry a TTL of their own: a default TTL of -1.
	// Without it the default TTL may be off, too; never may documents that have none of
	// their own expire.
	TTL bool
}

// Verify checks that the database and the containers exist and are as they have
// to be. Its error names all that is missing or wrong. It creates nothing. If the
// account does not answer, the error is fault.Unavailable or fault.Throttled.
func Verify(ctx context.Context, client *azcosmos.Client, database string, containers ...ContainerSpec) error {
	db, err := client.NewDatabase(database)
	if err != nil {
		return fmt.Errorf("verify database %s: %w", database, err)
	}
	if _, err := db.Read(ctx, nil); err != nil {
		err = store.AsFault("read database "+database, err)
		if fault.Is(err, fault.NotFound) {
			return fmt.Errorf("the database %q does not exist in the account %s: create it with its containers", database, client.Endpoint())
		}
		return err
	}
	var faults []error
	for _, spec := range containers {
		container, err := db.NewContainer(spec.ID)
		if err != nil {
			return fmt.Errorf("verify container %s: %w", spec.ID, err)
		}
		if err := spec.verify(ctx, container); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func (s ContainerSpec) verify(ctx context.Context, container *azcosmos.ContainerClient) error {
	reply, err := container.Read(ctx, nil)
	if err != nil {
		err = store.AsFault("read container "+s.ID, err)
		if fault.Is(err, fault.NotFound) {
			return fmt.Errorf("the container %q does not exist: create it with the partition key %s", s.ID, s.PartitionKeyPath)
		}
		return err
	}
	properties := reply.ContainerProperties
	var faults []error
	if paths := properties.PartitionKeyDefinition.Paths; !slices.Equal(paths, []string{s.PartitionKeyPath}) {
		faults = append(faults, fmt.Errorf("the container %q has the partition key %v, it needs %s: create it anew", s.ID, paths, s.PartitionKeyPath))
	}
	switch ttl := properties.DefaultTimeToLive; {
	case s.TTL && (ttl == nil || *ttl != never):
		faults = append(faults, fmt.Errorf("the container %q has the default TTL %s, it needs -1 (on, no default): change it", s.ID, describeTTL(ttl)))
	case ttl != nil && *ttl > 0:
		faults = append(faults, &ExpiryError{Container: s.ID, TTL: *ttl})
	}
	return errors.Join(faults...)
}

// ExpiryError says that the documents of a container expire that must not.
type ExpiryError struct {
	Container string
	TTL       int32 // the default, in seconds
}

// Error implements error.
func (e *ExpiryError) Error() string {
	return fmt.Sprintf("the container %q has the default TTL %d, after which what is kept in it would vanish: az cosmosdb sql container update --name %s --ttl -1", e.Container, e.TTL, e.Container)
}

func describeTTL(ttl *int32) string {
	if ttl == nil {
		return "off"
	}
	return fmt.Sprint(*ttl)
}

// RelayContainers are those that a relay needs, by their names: what it reads, its leases,
// and what it parks.
func RelayContainers(events document.EventContract, data, leases, parked string) []ContainerSpec {
	return []ContainerSpec{
		{ID: data, PartitionKeyPath: events.PartitionKeyPath(), TTL: true}, {ID: leases, PartitionKeyPath: "/id"}, {ID: parked, PartitionKeyPath: PartitionKeyPath},
	}
}

// DataContainer is the container of aggregates and their events.
func DataContainer(id string) ContainerSpec {
	return ContainerSpec{ID: id, PartitionKeyPath: PartitionKeyPath, TTL: true}
}
