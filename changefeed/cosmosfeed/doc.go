// Package cosmosfeed lets package changefeed read an Azure Cosmos DB container and
// keep its leases in another, through azcosmos v1.5.0.
//
//	client, err := azcosmos.NewClient(endpoint, credential, cosmosfeed.ClientOptions(nil))
//	feed, err := cosmosfeed.NewFeed(client, "shop", "orders")
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
// # Which documents are a lease's
//
// A read goes to one physical range, all of it. Most leases have just the bounds of
// a physical range; after a merge, or with a narrow scope, a lease is a part of one.
//
//	reply to a read of the lease L
//	  │
//	  ├─ 410: the SDK lists the ranges anew and asks again
//	  ├─ its token has several entries: L was split ──▶ SplitError, nothing is used
//	  │
//	  └─ from the physical range with id N
//	       ├─ bounds of N unknown: list the ranges, read again. Only if N replies
//	       │  again was it in that list, and its bounds are known for good
//	       │
//	       ├─ L contains N (the rule): no EPK headers, everything is L's.
//	       │    The effective partition key of each document is computed, as a check.
//	       │    One outside N is delivered, and told once: Page.Doubt
//	       │
//	       └─ L is a part of N: EPK headers, and each document is L's or another
//	            lease's by its computed key. The read fails, so that the range is
//	            stuck and seen to be, if a key cannot be computed (no value,
//	            hierarchical, hash version 1), lies outside N, or Page.Doubt
//	            was ever given
//
// So nothing rests on the computed keys unless a lease is a part of a range, and
// there they have been checked where that is possible. The list of ranges may be as
// old as it likes: what decides is the id the very reply came from, and an id's
// bounds never change. Two leases that share a physical range part its documents by
// one function; two that do not have nothing to part.
//
// The check costs what the hash of a key costs, some 50 ns for a UUID, and is made
// for every document.
//
// # Goroutines
//
// None. Feed and LeaseStore are safe for concurrent use and hold no more than the
// container's identity, the bounds of its ranges, and the first doubt.
package cosmosfeed
