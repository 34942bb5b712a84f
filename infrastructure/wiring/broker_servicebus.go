package wiring

import (
	"go.uber.org/fx"

	"feedbox/infrastructure/operator"
	azureoperator "feedbox/infrastructure/operator/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/relay/relayservice/azure"
)

// serviceBusBroker is Service Bus.
type serviceBusBroker struct{}

func (serviceBusBroker) name() string { return azure.BrokerName }

func (serviceBusBroker) relay(lc fx.Lifecycle, p Params, cfg *config.Relay) (relayservice.Broker, error) {
	client, err := p.serviceBusClient(cfg.ServiceBus)
	if err != nil {
		return relayservice.Broker{}, err
	}
	lc.Append(fx.StopHook(client.Close))
	return azure.Broker(client, &azure.BrokerOptions{
		Topic: cfg.ServiceBus.Topic, Topics: cfg.ServiceBus.TopicsBySubject(), Source: cfg.ServiceBus.Source, PackKeys: cfg.ServiceBus.PackKeys,
	})
}

func (serviceBusBroker) operator(p Params, cfg *config.Relay) (operator.Broker, error) {
	clients := azureoperator.BrokerClients{}
	var err error
	if cfg.ServiceBus.Namespace != "" {
		if clients.Identity, err = p.credential(); err != nil {
			return nil, err
		}
	}
	if clients.Bus, err = p.serviceBusClient(cfg.ServiceBus); err != nil {
		return nil, err
	}
	return azureoperator.Broker(cfg.ServiceBus, clients), nil
}
