package doctor

import (
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// Containers are those that process uses, as they have to be. The deployment creates
// them, the service only verifies.
func Containers(process operator.Process, cfg config.Cosmos, contract document.EventContract) []cosmos.ContainerSpec {
	if process == operator.ProcessAPI {
		return []cosmos.ContainerSpec{cosmos.DataContainer(cfg.Container)}
	}
	return cosmos.RelayContainers(contract, cfg.Container, cfg.Leases, cfg.Parked)
}
