package wiring

import (
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/doctor"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// brokers holds the kinds of brokers by the values of FEEDBOX_BROKER. Only the chosen kind
// builds adapters.
var brokers = map[string]broker{
	config.BrokerServiceBus: serviceBusBroker{},
	config.BrokerRabbitMQ:   rabbitMQBroker{},
	config.BrokerSQS:        sqsBroker{},
	config.BrokerSNS:        snsBroker{},
}

// broker builds the adapters of one kind of broker.
type broker interface {
	// name identifies the broker in metrics and probes.
	name() string
	// open builds the broker of a relay or an operator, which must close it. client names the
	// connection if the broker shows names.
	open(p Params, cfg *config.Relay, client string) (operator.Broker, error)
}

// serviceBusBroker is Service Bus.
type serviceBusBroker struct{}

func (serviceBusBroker) name() string { return servicebus.BrokerName }

func (serviceBusBroker) open(p Params, cfg *config.Relay, _ string) (operator.Broker, error) {
	namespace, err := p.serviceBusNamespace(cfg.ServiceBus)
	if err != nil {
		return operator.Broker{}, err
	}
	client, err := servicebus.NewClient(namespace)
	if err != nil {
		return operator.Broker{}, err
	}
	broker, err := servicebus.NewRelayBroker(client, &servicebus.RelayBrokerOptions{
		Topic: cfg.ServiceBus.Topic, Topics: cfg.ServiceBus.TopicsBySubject(), Source: cfg.ServiceBus.Source, PackKeys: cfg.ServiceBus.PackKeys,
	})
	if err != nil {
		return operator.Broker{}, err
	}
	letters, err := subscriber.NewDeadLetters(namespace, cfg.ServiceBus.Topic)
	return operator.Broker{
		Broker: broker, Doctor: doctor.New(cfg.ServiceBus, client, namespace.Credential), Close: client.Close,
		DeadLetters: letters,
	}, err
}
