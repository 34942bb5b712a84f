package wiring

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
)

// Operator is what the commands for people work with: the relay's own adapters,
// over the relay's configuration. It runs nothing; a relay carries out what it asks
// for. It is safe for concurrent use.
type Operator struct {
	// Leases looks at and steers the leases of the configured processor.
	Leases *changefeed.Operator
	// Lot holds the parked keys.
	Lot *cosmos.ParkedLot

	cfg    *config.Relay
	around Surroundings
	client *azcosmos.Client
	data   *azcosmos.ContainerClient
	feed   *cosmosfeed.Feed
	skew   *clockSkew
	about  *cosmos.Account
	stops  hooks
}

// NewOperator connects nothing yet; the first use does. Of s, only the transports and
// the credential count.
func NewOperator(cfg *config.Relay, s Surroundings) (*Operator, error) {
	o := &Operator{cfg: cfg, around: s, skew: &clockSkew{}, about: &cosmos.Account{}}
	var err error
	if o.client, err = s.cosmosClient(cfg.Cosmos, tracing.Provider{}, append(feedPolicies(), o.skew, o.about)...); err != nil {
		return nil, err
	}
	if o.data, err = o.client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Container); err != nil {
		return nil, err
	}
	if o.feed, err = cosmosfeed.NewFeed(o.client, cfg.Cosmos.Database, cfg.Cosmos.Container, nil); err != nil {
		return nil, err
	}
	leases, err := cosmosfeed.NewLeaseStore(o.client, cfg.Cosmos.Database, cfg.Cosmos.Leases)
	if err != nil {
		return nil, err
	}
	o.Leases = changefeed.NewOperator(o.feed, leases, &changefeed.OperatorOptions{Processor: cfg.Processor})
	o.Lot, err = newParkedLot(cfg, o.client)
	return o, err
}

// Close ends the connections that were made.
func (o *Operator) Close(ctx context.Context) error { return o.stops.stop(ctx) }

// hooks are the stop hooks of constructors that are used outside an fx app.
type hooks []fx.Hook

// Append implements fx.Lifecycle.
func (h *hooks) Append(hook fx.Hook) { *h = append(*h, hook) }

// hooksTimeout bounds the closing of connections.
const hooksTimeout = 5 * time.Second

// stop runs the hooks, the last first, also after ctx has ended.
func (h *hooks) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hooksTimeout)
	defer cancel()
	var errs []error
	for _, hook := range slices.Backward(*h) {
		if hook.OnStop != nil {
			errs = append(errs, hook.OnStop(ctx))
		}
	}
	*h = nil
	return errors.Join(errs...)
}
