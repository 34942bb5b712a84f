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
	if process == ProcessAPI {
		return []cosmos.ContainerSpec{cosmos.DataContainer(cfg.Container)}
	}
	return cosmos.RelayContainers(cfg.Container, cfg.Leases, cfg.Parked)
}
