package wiring

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/operator/rabbit"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayservice"
)

// rabbitMQBroker is RabbitMQ.
type rabbitMQBroker struct{}

func (rabbitMQBroker) name() string { return "rabbitMQ" }

func (b rabbitMQBroker) relay(lc fx.Lifecycle, _ Params, cfg *config.Relay) (relayservice.Broker, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: cfg.RabbitMQ.URL.Reveal(), Name: cfg.Instance})
	if err != nil {
		return relayservice.Broker{}, err
	}
	lc.Append(fx.StopHook(client.Close))
	return relayservice.Broker{
		Name: b.name(), System: "rabbitmq", Destination: cfg.RabbitMQ.Exchange,
		Open: func(_ *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayservice.Publisher, error) {
			return rabbitmq.NewPublisher(client, cfg.RabbitMQ.Exchange, &rabbitmq.PublisherOptions{Source: cfg.RabbitMQ.Source, Sent: sent})
		},
	}, nil
}

func (rabbitMQBroker) operator(_ Params, cfg *config.Relay) (operator.Broker, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: cfg.RabbitMQ.URL.Reveal(), Name: "feedbox operator"})
	if err != nil {
		return nil, err
	}
	return rabbit.Broker(cfg.RabbitMQ, client), nil
}
