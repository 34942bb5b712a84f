// Package cosmosfeed lets package changefeed read an Azure Cosmos DB container and
// keep its leases in another, through azcosmos v1.5.0.
//
//	client, err := azcosmos.NewClient(endpoint, credential, cosmosfeed.ClientOptions(nil))
//	feed, err := cosmosfeed.NewFeed(client, "shop", "orders", nil)
//	leases, err := cosmosfeed.NewLeaseStore(client, "shop", "leases")
//
// # What azcosmos leaves to this package
//
// ReadChangeFeed works on a queue of physical ranges and is asked here with a
// token of one entry only, made by hand: the lease's bounds and its position, a
// raw ETag, which is also what the lease records. The answer has one entry too,
// unless the SDK found the range served by several physical ranges: that is the
// split signal, and what came with it is not used.
//
// azcosmos reads whole physical ranges. Each document is therefore kept or
// dropped by its own effective partition key, computed here, so that no document
// reaches two leases, whatever the service or the SDK make of narrow ranges.
// Containers need partition keys of hash version 2.
//
// # Goroutines
//
// None. Feed and LeaseStore are safe for concurrent use and hold no more than the
// container's identity, read once.
package cosmosfeed
