// Package cosmosrelay builds the store of a relay in Cosmos DB, whose change feed the relay
// reads.
//
//	store, err := cosmosrelay.NewStore(client, &cosmosrelay.Options{Database: "shop"})
//
// Containers: the data, partitioned by its own key, with a default TTL of -1; leases by /id;
// parked events by /partitionKey. The last two have no default TTL, because leases and parked
// events must not expire.
//
// Nothing here does I/O or starts a goroutine. It is not part of package cosmos, so that a
// program which only writes does not link the change feed.
package cosmosrelay

import (
	"cmp"
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/infrastructure/store/document"
)

// Name identifies Cosmos DB in metrics and probes.
const Name = "cosmos"

// Options name the containers of a relay. Database is required; the zero values of the others are
// the defaults.
type Options struct {
	// Database holds the three containers.
	Database string
	// Data is the container whose change feed is read. Default "data".
	Data string
	// Leases is the container of the relay's leases. Default "leases".
	Leases string
	// Parked is the container of parked events. Default "parked".
	Parked string
	// Contract distinguishes events from other documents. The zero value is that of package
	// document.
	Contract document.EventContract
	// AllVersions reads the feed of all versions and deletes, so that events may expire before the relay
	// has read them; see cosmosfeed.NewVersionsFeed.
	AllVersions bool
	// Account, if it is a policy of the client, makes Verify check the account.
	Account *cosmos.Account
}

// NewStore returns the store of a relay. Use a client of cosmos.NewClient, or one with
// cosmosfeed.ClientOptions: it lets the service omit documents outside the range, decodes a page
// in one pass, and does not fail for minutes after its first request failed.
func NewStore(client *azcosmos.Client, o *Options) (relayport.Store, error) {
	given, err := o.withDefaults()
	if client == nil {
		err = errors.Join(errors.New("cosmosrelay: the client of Cosmos DB is missing"), err)
	}
	if err != nil {
		return relayport.Store{}, err
	}
	newFeed := cosmosfeed.NewFeed
	if given.AllVersions {
		newFeed = cosmosfeed.NewVersionsFeed
	}
	feed, err := newFeed(client, given.Database, given.Data)
	if err != nil {
		return relayport.Store{}, err
	}
	s := relayport.Store{Name: Name, Feed: feed, Verify: func(ctx context.Context) error {
		err := cosmos.Verify(ctx, client, given.Database, cosmos.RelayContainers(given.Contract, given.Data, given.Leases, given.Parked)...)
		if given.Account != nil && (err == nil || given.Account.Level() != "") { // otherwise both would report the same outage
			err = errors.Join(given.Account.Verify(), err)
		}
		if err == nil && given.AllVersions {
			err = verifyVersions(ctx, feed)
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
	own, err1 := parked.NewStore(aside)
	s.Parked, s.ParkedOf, s.ParkedBy = own, func(consumer string) (relayport.Parked, error) { return own.Of(consumer) }, own.Consumers
	leases, err3 := cosmosfeed.NewLeaseStore(client, given.Database, given.Leases)
	markers, err4 := cosmosfeed.NewLeaseStore(client, given.Database, given.Parked) // the same form of record, with an ETag
	s.Leases, s.Markers = leases, markers
	return s, errors.Join(err, err1, err3, err4)
}

// verifyVersions reads the feed once, because nothing else shows whether the account has this feed.
func verifyVersions(ctx context.Context, feed *cosmosfeed.Feed) error {
	ranges, err := feed.Ranges(ctx)
	if err == nil && len(ranges) > 0 {
		_, err = feed.Now(ctx, ranges[0])
	}
	return err
}

func (o *Options) withDefaults() (Options, error) {
	var given Options
	if o != nil {
		given = *o
	}
	given.Data = cmp.Or(given.Data, "data")
	given.Leases = cmp.Or(given.Leases, "leases")
	given.Parked = cmp.Or(given.Parked, "parked")
	switch {
	case given.Database == "":
		return given, errors.New("cosmosrelay: Database is missing")
	case given.Data == given.Leases || given.Data == given.Parked || given.Leases == given.Parked:
		return given, errors.New("cosmosrelay: Data, Leases and Parked must be three different containers")
	}
	return given, nil
}
