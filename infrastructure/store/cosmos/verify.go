package cosmos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// ContainerSpec defines the required properties of a container.
type ContainerSpec struct {
	// ID is the container's name.
	ID string
	// PartitionKeyPath is its only partition key path, such as /partitionKey.
	PartitionKeyPath string
	// TTL requires a default TTL of -1, so that each document may have its own TTL. Otherwise
	// the default TTL may also be off. A positive default TTL is always refused, because
	// documents without a TTL of their own would expire.
	TTL bool
}

// At the first start after a deployment the service may still be creating the containers, which
// takes seconds. A start may take 15 s in all.
const (
	creationWait = 10 * time.Second
	creationPoll = 500 * time.Millisecond
)

// Verify checks that the database and the containers exist and have the required properties. Its
// error names everything that is missing or wrong. It creates nothing, but waits some seconds for
// containers that the service is still creating. If the account does not answer, the error is
// fault.Unavailable or fault.Throttled.
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
	until := time.Now().Add(creationWait)
	for _, spec := range containers {
		container, err := db.NewContainer(spec.ID)
		if err != nil {
			return fmt.Errorf("verify container %s: %w", spec.ID, err)
		}
		if err := spec.await(ctx, container, until); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// VerifyNames checks that containers exist, with any properties. It returns nil if the account does not answer,
// because its callers wait for the account later, or refuses the read, because other requests may be allowed.
func VerifyNames(ctx context.Context, client *azcosmos.Client, database string, containers ...string) error {
	ctx, cancel := context.WithTimeout(ctx, creationWait) // otherwise the start would time out
	defer cancel()
	var faults []error
	for _, id := range containers {
		container, err := client.NewContainer(database, id)
		if err != nil {
			return fmt.Errorf("verify container %s: %w", id, err)
		}
		if _, err := container.Read(ctx, nil); err != nil && fault.Is(store.AsFault("read container "+id, err), fault.NotFound) {
			faults = append(faults, fmt.Errorf("the container %q does not exist in the database %q: create it, or correct the name", id, database))
		}
	}
	return errors.Join(faults...)
}

// await verifies the container, until a time again while the service creates it.
func (s ContainerSpec) await(ctx context.Context, container *azcosmos.ContainerClient, until time.Time) error {
	for {
		err := s.verify(ctx, container)
		if !store.BeingCreated(err) || !time.Now().Before(until) {
			return err
		}
		select {
		case <-time.After(creationPoll):
		case <-ctx.Done():
			return err
		}
	}
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
		faults = append(faults, fmt.Errorf("the container %q has the partition key %v, it needs %s: create it again", s.ID, paths, s.PartitionKeyPath))
	}
	switch ttl := properties.DefaultTimeToLive; {
	case s.TTL && (ttl == nil || *ttl != never):
		faults = append(faults, fmt.Errorf("the container %q has the default TTL %s, it needs -1 (on, no default), otherwise its events never expire or all its documents do: az cosmosdb sql container update --name %s --ttl -1", s.ID, describeTTL(ttl), s.ID))
	case ttl != nil && *ttl > 0:
		faults = append(faults, &ExpiryError{Container: s.ID, TTL: *ttl})
	}
	return errors.Join(faults...)
}

// ExpiryError reports a container whose documents expire but must not.
type ExpiryError struct {
	Container string
	TTL       int32 // the default, in seconds
}

// Error implements error.
func (e *ExpiryError) Error() string {
	return fmt.Sprintf("the container %q has the default TTL %d, after which its documents would expire: az cosmosdb sql container update --name %s --ttl -1", e.Container, e.TTL, e.Container)
}

func describeTTL(ttl *int32) string {
	if ttl == nil {
		return "off"
	}
	return fmt.Sprint(*ttl)
}

// RelayContainers returns the containers that a relay needs: its data container, its leases and
// its parked events.
func RelayContainers(events document.EventContract, data, leases, parked string) []ContainerSpec {
	return []ContainerSpec{
		{ID: data, PartitionKeyPath: events.PartitionKeyPath(), TTL: true}, {ID: leases, PartitionKeyPath: "/id"}, {ID: parked, PartitionKeyPath: PartitionKeyPath},
	}
}

// DataContainer returns the container of aggregates and their events.
func DataContainer(id string) ContainerSpec {
	return ContainerSpec{ID: id, PartitionKeyPath: PartitionKeyPath, TTL: true}
}
