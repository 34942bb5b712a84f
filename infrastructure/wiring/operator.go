package wiring

import (
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// Operator returns the use cases of the operator commands. It uses only the transports,
// the credential and the log of p. Without a configured broker, use cases that send fail.
func Operator(cfg *config.Relay, p Params) (*operator.Operator, error) {
	return operatorFor(cfg, p, use{})
}

func operatorFor(cfg *config.Relay, p Params, u use) (*operator.Operator, error) {
	store, err := stores[cfg.Store.Kind].open(p, cfg, u)
	if err != nil {
		return nil, err
	}
	if !cfg.HasBroker() {
		return operator.New(cfg, store, nil), nil
	}
	broker, err := brokers[cfg.Broker.Kind].open(p, cfg, "feedbox operator")
	if err != nil {
		return nil, err
	}
	return operator.New(cfg, store, &broker), nil
}
