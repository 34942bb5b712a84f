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
