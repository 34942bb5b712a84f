package operator

import (
	"context"
	"errors"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// Operator is what the commands for people work with: the relay's own adapters, over the
// relay's configuration. It runs nothing; a relay carries out what it asks for. It is
// safe for concurrent use.
type Operator struct {
	// Leases looks at and steers the leases of the configured processor.
	Leases *changefeed.Operator
	// Lot holds the parked keys.
	Lot relayport.Parked

	cfg    *config.Relay
	store  Store
	broker *Broker
}

// New connects nothing yet; the first use does. Store and broker are closed by the
// Operator. A nil broker: the configuration names none, and what sends fails.
func New(cfg *config.Relay, store Store, broker *Broker) *Operator {
	return &Operator{
		Leases: changefeed.NewOperator(store.Feed, store.Leases, &changefeed.OperatorOptions{Processor: cfg.Processor}),
		Lot:    store.Parked, cfg: cfg, store: store, broker: broker,
	}
}

// errNoBroker says that the configuration does not tell where events go.
var errNoBroker = errors.New("the configuration names no broker")

// closeTimeout bounds the closing of connections.
const closeTimeout = 5 * time.Second

// Close ends the connections that were made, also after ctx has ended.
func (o *Operator) Close(ctx context.Context) error {
	if o.store.Close != nil {
		o.store.Close()
	}
	if o.broker == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return o.broker.Close(ctx)
}
