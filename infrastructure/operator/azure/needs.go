package azure

import (
	"strings"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/document"
	"feedbox/infrastructure/operator"
)

// Contract says which documents are events, as it is configured.
func Contract(e config.Event) document.EventContract {
	types := make([]string, len(e.Types))
	for i, one := range e.Types {
		types[i] = strings.TrimSpace(one)
	}
	return document.EventContract{
		Type: e.TypeMember, Types: types, ID: e.IDMember, Key: e.KeyMember, Body: e.BodyMember, Subject: e.SubjectMember,
		Sequence: e.SequenceMember, Version: e.VersionMember, CreatedAt: e.CreatedAtMember, Traceparent: e.TraceparentMember,
	}
}

// Containers are those that process uses, as they have to be. The deployment creates
// them, the service only verifies.
func Containers(process operator.Process, cfg config.Cosmos, contract document.EventContract) []cosmos.ContainerSpec {
	if process == operator.ProcessAPI {
		return []cosmos.ContainerSpec{cosmos.DataContainer(cfg.Container)}
	}
	return cosmos.RelayContainers(contract, cfg.Container, cfg.Leases, cfg.Parked)
}
