package wiring

import (
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/operator"
)

// Operator makes the clients of an operator. Of p, only the transports and the credential
// count. Service Bus may be left out of the configuration; what sends fails then.
func Operator(cfg *config.Relay, p Params) (*operator.Operator, error) {
	clients := operator.Clients{Clock: &operator.Clock{}, Account: &cosmos.Account{}}
	var err error
	if clients.Cosmos, err = p.feedClient(cfg.Cosmos, clients.Clock, clients.Account); err != nil {
		return nil, err
	}
	if !cfg.Cosmos.Key.IsSet() || cfg.ServiceBus.Namespace != "" {
		if clients.Identity, err = p.credential(); err != nil {
			return nil, err
		}
	}
	if cfg.ServiceBus.IsSet() {
		if clients.Bus, err = p.serviceBusClient(cfg.ServiceBus); err != nil {
			return nil, err
		}
	}
	return operator.New(cfg, clients)
}
