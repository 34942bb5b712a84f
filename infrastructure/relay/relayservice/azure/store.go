package azure

import (
	"cmp"
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/infrastructure/store/document"
)

// StoreName is that of Cosmos DB in metrics and probes.
const StoreName = "cosmos"

// StoreOptions name what a relay reads and writes. Database is required; the zero values of
// the others are the defaults.
type StoreOptions struct {
	// Database holds the three containers.
	Database string
	// Data is the container whose change feed is read. Default "data".
	Data string
	// Leases is the container of the relay's leases. Default "leases".
	Leases string
	// Parked is the container of parked events. Default "parked".
	Parked string
	// Contract says which documents are events. The zero value is that of package cosmos.
	Contract document.EventContract
	// Account, if the client has it as a policy, lets Verify judge the account.
	Account *cosmos.Account
}

// Store returns the store of a relay. The feed is read best by a client with
// cosmosfeed.ClientOptions.
func Store(client *azcosmos.Client, o *StoreOptions) (relayservice.Store, error) {
	given, err := o.withDefaults()
	if client == nil {
		err = errors.Join(errors.New("azure: the client of Cosmos DB is missing"), err)
	}
	if err != nil {
		return relayservice.Store{}, err
	}
	s := relayservice.Store{Name: StoreName, Verify: func(ctx context.Context) error {
		err := cosmos.Verify(ctx, client, given.Database, cosmos.RelayContainers(given.Contract, given.Data, given.Leases, given.Parked)...)
		if given.Account != nil {
			err = errors.Join(given.Account.Verify(), err)
		}
		return err
	}}
	decoder, err := document.NewEventDecoder(given.Contract)
	data, err1 := client.NewContainer(given.Database, given.Data)
	aside, err2 := client.NewContainer(given.Database, given.Parked)
	if err := errors.Join(err, err1, err2); err != nil {
		return s, err
	}
	s.Decoder = decoder
	s.Events, err = cosmos.NewEventStore(data, decoder)
	s.Parked, err1 = parked.New(aside)
	s.Feed, err2 = cosmosfeed.NewFeed(client, given.Database, given.Data)
	leases, err3 := cosmosfeed.NewLeaseStore(client, given.Database, given.Leases)
	s.Leases = leases
	return s, errors.Join(err, err1, err2, err3)
}

func (o *StoreOptions) withDefaults() (StoreOptions, error) {
	var given StoreOptions
	if o != nil {
		given = *o
	}
	given.Data = cmp.Or(given.Data, "data")
	given.Leases = cmp.Or(given.Leases, "leases")
	given.Parked = cmp.Or(given.Parked, "parked")
	switch {
	case given.Database == "":
		return given, errors.New("azure: Database is missing")
	case given.Data == given.Leases || given.Data == given.Parked || given.Leases == given.Parked:
		return given, errors.New("azure: Data, Leases and Parked must be three different containers")
	}
	return given, nil
}
