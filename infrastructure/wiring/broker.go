package wiring

import (
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
