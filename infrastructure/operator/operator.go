package operator

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// Operator serves the commands and the operations page with the relay's own adapters and
// configuration. It sends nothing but replays; a relay carries out all other requests. It is
// safe for concurrent use.
type Operator struct {
	// Leases reads the leases of the configured processor and records requests to their
	// owners.
	Leases *changefeed.Operator
	// Parked holds the parked events.
	Parked relayport.Parked

	cfg    *config.Relay
	store  Store
	broker *Broker

	ofConsumer bool // Parked is that of a consumer
}

// New returns an Operator, which connects on first use. It owns store and broker and closes
// them. With a nil broker, the use cases that send fail.
func New(cfg *config.Relay, store Store, broker *Broker) *Operator {
	return &Operator{
		Leases: changefeed.NewOperator(store.Feed, store.Leases, &changefeed.OperatorOptions{Processor: cfg.Processor}),
		Parked: store.Parked, cfg: cfg, store: store, broker: broker,
	}
}

// OfConsumer makes Parked the parked events of a consumer instead of the relay's.
func (o *Operator) OfConsumer(name string) error {
	if o.store.ParkedOf == nil {
		return errors.New("this store has no parked events of consumers")
	}
	parked, err := o.store.ParkedOf(name)
	if err == nil {
		o.Parked, o.ofConsumer = parked, true
	}
	return err
}

// Consumer returns an operator with the parked events of a consumer, over the connections of o.
func (o *Operator) Consumer(name string) (*Operator, error) {
	other := *o
	return &other, other.OfConsumer(name)
}

// ConsumerKeys are the parked keys of a consumer.
type ConsumerKeys struct {
	Consumer string
	Gates    []relay.Gate // at least one
}

// ConsumerKeys returns the parked keys of all consumers that park in the store, by their names.
func (o *Operator) ConsumerKeys(ctx context.Context) (all []ConsumerKeys, err error) {
	if o.store.ParkedBy == nil || o.store.ParkedOf == nil {
		return nil, nil
	}
	names, err := o.store.ParkedBy(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		parked, err := o.store.ParkedOf(name)
		if err != nil {
			return nil, err
		}
		gates, err := parked.Gates(ctx)
		if err != nil {
			return nil, err
		}
		if len(gates) > 0 { // they may have opened meanwhile
			all = append(all, ConsumerKeys{name, gates})
		}
	}
	return all, nil
}

// errNoBroker is returned by use cases that send when the configuration names no broker.
var errNoBroker = errors.New("the configuration names no broker")

const closeTimeout = 5 * time.Second

// Close ends the connections that were opened, even if ctx has ended.
func (o *Operator) Close(ctx context.Context) error {
	if o.store.Close != nil {
		o.store.Close()
	}
	if o.broker == nil || o.broker.Close == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return o.broker.Close(ctx)
}
