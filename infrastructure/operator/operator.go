package operator

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/cosmos/parked"
	"feedbox/infrastructure/servicebus"
)

// Operator is what the commands for people work with: the relay's own adapters, over the
// relay's configuration. It runs nothing; a relay carries out what it asks for. It is
// safe for concurrent use.
type Operator struct {
	// Leases looks at and steers the leases of the configured processor.
	Leases *changefeed.Operator
	// Lot holds the parked keys.
	Lot *parked.Lot

	cfg     *config.Relay
	clients Clients
	data    *azcosmos.ContainerClient
	feed    *cosmosfeed.Feed
	decoder cosmos.EventDecoder
}

// Clients are what an Operator works with, ready to use.
type Clients struct {
	Cosmos *azcosmos.Client
	// Clock and Account see each request of Cosmos.
	Clock   *Clock
	Account *cosmos.Account
	// Bus is closed by the Operator. nil: the configuration names no namespace.
	Bus *servicebus.Client
	// Identity is the credential of this process; nil where only keys are used.
	Identity azcore.TokenCredential
}

// New connects nothing yet; the first use does.
func New(cfg *config.Relay, clients Clients) (*Operator, error) {
	o := &Operator{cfg: cfg, clients: clients}
	var err error
	if o.decoder, err = cosmos.NewEventDecoder(Contract(cfg.Event)); err != nil {
		return nil, err
	}
	if o.data, err = clients.Cosmos.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Container); err != nil {
		return nil, err
	}
	if o.feed, err = cosmosfeed.NewFeed(clients.Cosmos, cfg.Cosmos.Database, cfg.Cosmos.Container); err != nil {
		return nil, err
	}
	leases, err := cosmosfeed.NewLeaseStore(clients.Cosmos, cfg.Cosmos.Database, cfg.Cosmos.Leases)
	if err != nil {
		return nil, err
	}
	o.Leases = changefeed.NewOperator(o.feed, leases, &changefeed.OperatorOptions{Processor: cfg.Processor})
	lot, err := clients.Cosmos.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Parked)
	if err != nil {
		return nil, err
	}
	o.Lot, err = parked.New(lot)
	return o, err
}

// closeTimeout bounds the closing of connections.
const closeTimeout = 5 * time.Second

// Close ends the connections that were made, also after ctx has ended.
func (o *Operator) Close(ctx context.Context) error {
	if o.clients.Bus == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return o.clients.Bus.Close(ctx)
}
