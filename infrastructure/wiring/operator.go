package wiring

import (
	"context"
	"errors"

	"feedbox/infrastructure/consumer/handling"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// Operator returns the use cases of the operator commands. It uses only the transports,
// the credential and the log of p. Without a configured broker, use cases that send fail.
func Operator(cfg *config.Relay, p Params) (*operator.Operator, error) {
	return operatorFor(cfg, p, use{})
}

// operatorFor closes what it has opened if it fails.
func operatorFor(cfg *config.Relay, p Params, u use) (*operator.Operator, error) {
	store, err := stores[cfg.Store.Kind].open(p, cfg, u)
	var broker *operator.Broker
	if err == nil && cfg.HasBroker() {
		broker = new(operator.Broker)
		*broker, err = brokers[cfg.Broker.Kind].open(p, cfg, "feedbox operator")
	}
	store.ParkedDecoder = handling.Decoder{}
	o := operator.New(cfg, store, broker)
	if err != nil {
		return nil, errors.Join(err, o.Close(context.Background())) //nolint:forbidigo // Close has a limit
	}
	return o, nil
}
