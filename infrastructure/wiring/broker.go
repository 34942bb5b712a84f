package wiring

import (
	"context"
	"errors"

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
	clients, doctors, letters := map[string]*servicebus.Client{}, doctor.Namespaces{}, subscriber.Namespaces{}
	// open connects to a namespace; the name of the default one is "".
	open := func(name string) error {
		one := cfg.ServiceBus.In(name)
		namespace, err := p.serviceBusNamespace(one)
		if err != nil {
			return err
		}
		if clients[name], err = servicebus.NewClient(namespace); err != nil {
			return err
		}
		doctors.Add(name, doctor.New(one, clients[name], namespace.Credential))
		letters[name], err = subscriber.NewDeadLetters(namespace, one.Topic)
		return err
	}
	if err := open(""); err != nil {
		return operator.Broker{}, err
	}
	o := &servicebus.RelayBrokerOptions{
		Topic: cfg.ServiceBus.Topic, Topics: cfg.ServiceBus.TopicsBySubject(), Source: cfg.ServiceBus.Source, PackKeys: cfg.ServiceBus.PackKeys,
	}
	for _, s := range cfg.ServiceBus.ShardList() {
		if clients[s.Namespace] == nil {
			if err := open(s.Namespace); err != nil {
				return operator.Broker{}, err
			}
		}
		o.Shards = append(o.Shards, servicebus.Shard{Name: s.String(), Topic: s.Topic, Client: clients[s.Namespace]})
	}
	broker, err := servicebus.NewRelayBroker(clients[""], o)
	return operator.Broker{
		Broker: broker, Doctor: doctors, DeadLetters: letters,
		Close: func(ctx context.Context) error {
			var errs []error
			for _, client := range clients {
				errs = append(errs, client.Close(ctx))
			}
			return errors.Join(errs...)
		},
	}, err
}
