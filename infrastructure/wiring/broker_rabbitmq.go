package wiring

import (
	"context"

	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/rabbitmq/doctor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// rabbitMQBroker is RabbitMQ.
type rabbitMQBroker struct{}

func (rabbitMQBroker) name() string { return rabbitmq.BrokerName }

func (rabbitMQBroker) open(p Params, cfg *config.Relay, name string) (operator.Broker, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: cfg.RabbitMQ.URL.Reveal(), Name: name, Logger: p.Log})
	if err != nil {
		return operator.Broker{}, err
	}
	return operator.Broker{
		Broker:      rabbitmq.NewRelayBroker(client, cfg.RabbitMQ.Exchange, &rabbitmq.PublisherOptions{Source: cfg.RabbitMQ.Source, PackKeys: cfg.RabbitMQ.PackKeys}),
		Doctor:      doctor.New(cfg.RabbitMQ, client, cfg.Broker.Consumers...),
		DeadLetters: rabbitmq.NewDeadLetters(client),
		Close:       func(context.Context) error { return client.Close() },
	}, nil
}
