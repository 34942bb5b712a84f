package wiring

import (
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// brokers are the kinds of brokers, by the values of FEEDBOX_BROKER. Nothing is made of
// those that are not chosen.
var brokers = map[string]broker{
	config.BrokerServiceBus: serviceBusBroker{},
	config.BrokerRabbitMQ:   rabbitMQBroker{},
	config.BrokerSQS:        sqsBroker{},
}

// broker builds the adapters of one kind of broker.
type broker interface {
	// name identifies the broker in metrics and probes.
	name() string
	// open builds the broker for a relay or an operator, who closes it. client is the name
	// of the connection where the broker shows one.
	open(p Params, cfg *config.Relay, client string) (operator.Broker, error)
}
