package operator

import (
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
)

// Process is one of the two that the service consists of.
type Process string

// The processes.
const (
	ProcessRelay Process = "relay"
	ProcessAPI   Process = "api"
)

// Containers are those that process uses, as they have to be. The deployment creates
// them, the service only verifies.
func Containers(process Process, cfg config.Cosmos) []cosmos.ContainerSpec {
	data := cosmos.ContainerSpec{ID: cfg.Container, PartitionKeyPath: "/partitionKey", TTL: true}
	if process == ProcessAPI {
		return []cosmos.ContainerSpec{data}
	}
	return []cosmos.ContainerSpec{data, {ID: cfg.Leases, PartitionKeyPath: "/id"}, {ID: cfg.Parked, PartitionKeyPath: "/partitionKey"}}
}
