package wiring

import (
	"go.uber.org/fx"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayservice"
)

// brokers are the kinds of brokers, by the values of FEEDBOX_BROKER. Nothing is made of
// those that are not chosen.
var brokers = map[string]broker{
	config.BrokerServiceBus: serviceBusBroker{},
	config.BrokerRabbitMQ:   rabbitMQBroker{},
	config.BrokerSQS:        sqsBroker{},
}

// broker makes the adapters of one kind of broker.
type broker interface {
	// name is the broker's in metrics and probes.
	name() string
	// relay makes what a relay needs. What it opens is closed by hooks of lc.
	relay(lc fx.Lifecycle, p Params, cfg *config.Relay) (relayservice.Broker, error)
	// operator makes what an operator needs, who closes it.
	operator(p Params, cfg *config.Relay) (operator.Broker, error)
}
