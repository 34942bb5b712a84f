package doctor

import (
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// Containers returns the containers that a process uses, with their required properties. The
// deployment creates them; the service only verifies them.
func Containers(process operator.Process, cfg config.Cosmos, contract document.EventContract) []cosmos.ContainerSpec {
	if process == operator.ProcessAPI {
		return []cosmos.ContainerSpec{cosmos.DataContainer(cfg.Container)}
	}
	return cosmos.RelayContainers(contract, cfg.Container, cfg.Leases, cfg.Parked)
}
