package wiring

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/doctor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// serviceBusBroker is Service Bus.
type serviceBusBroker struct{}

func (serviceBusBroker) name() string { return servicebus.BrokerName }

func (serviceBusBroker) open(p Params, cfg *config.Relay, _ string) (operator.Broker, error) {
	var identity azcore.TokenCredential
	var err error
	if cfg.ServiceBus.Namespace != "" {
		if identity, err = p.credential(); err != nil {
			return operator.Broker{}, err
		}
	}
	client, err := p.serviceBusClient(cfg.ServiceBus)
	if err != nil {
		return operator.Broker{}, err
	}
	broker, err := servicebus.NewRelayBroker(client, &servicebus.RelayBrokerOptions{
		Topic: cfg.ServiceBus.Topic, Topics: cfg.ServiceBus.TopicsBySubject(), Source: cfg.ServiceBus.Source, PackKeys: cfg.ServiceBus.PackKeys,
	})
	return operator.Broker{Broker: broker, Doctor: doctor.New(cfg.ServiceBus, client, identity), Close: client.Close}, err
}
