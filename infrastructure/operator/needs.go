package operator

import (
	"maps"
	"slices"
	"strings"

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

// Contract says which documents are events, as it is configured.
func Contract(e config.Event) cosmos.EventContract {
	types := make([]string, len(e.Types))
	for i, one := range e.Types {
		types[i] = strings.TrimSpace(one)
	}
	return cosmos.EventContract{
		Type: e.TypeMember, Types: types, ID: e.IDMember, Key: e.KeyMember, Body: e.BodyMember, Subject: e.SubjectMember,
		Sequence: e.SequenceMember, Version: e.VersionMember, CreatedAt: e.CreatedAtMember, Traceparent: e.TraceparentMember,
	}
}

// Containers are those that process uses, as they have to be. The deployment creates
// them, the service only verifies.
func Containers(process Process, cfg config.Cosmos, contract cosmos.EventContract) []cosmos.ContainerSpec {
	if process == ProcessAPI {
		return []cosmos.ContainerSpec{cosmos.DataContainer(cfg.Container)}
	}
	return cosmos.RelayContainers(contract, cfg.Container, cfg.Leases, cfg.Parked)
}

// topics are those that events go to, the usual one first.
func (o *Operator) topics() []string {
	all := slices.Sorted(maps.Values(o.cfg.ServiceBus.TopicsBySubject()))
	all = slices.DeleteFunc(slices.Compact(all), func(topic string) bool { return topic == o.cfg.ServiceBus.Topic })
	return append([]string{o.cfg.ServiceBus.Topic}, all...)
}
