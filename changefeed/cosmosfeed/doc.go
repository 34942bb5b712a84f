// Package cosmosfeed lets package changefeed read an Azure Cosmos DB container and keep its
// leases in another container, through azcosmos v1.5.0.
//
//	client, err := azcosmos.NewClient(endpoint, credential, cosmosfeed.ClientOptions(nil))
//	feed, err := cosmosfeed.NewFeed(client, "shop", "orders")
//	leases, err := cosmosfeed.NewLeaseStore(client, "shop", "leases")
//
// # Continuation tokens
//
// ReadChangeFeed works on a queue of physical ranges. This package always passes a handmade
// token with one entry: the lease's bounds and its position, a raw ETag, which is also the
// position in the lease record. The reply has one entry too, unless the SDK found that
// several physical ranges serve the range. More entries therefore signal a split, and the
// documents of that reply are not used.
//
// # Documents of a lease
//
// A read covers exactly one physical range. Most leases have the bounds of a physical
// range; after a merge, or with a narrow scope, a lease is a part of one.
//
//	reply to a read of the lease L
//	  │
//	  ├─ 410: the SDK lists the ranges again and retries
//	  ├─ its token has several entries: L was split ──▶ SplitError, nothing is used
//	  │
//	  └─ from the physical range with id N
//	       ├─ bounds of N unknown: list the ranges, read again. Only if N replies
//	       │  again was it in that list, and its bounds are known for good
//	       │
//	       ├─ L contains N (the rule): no EPK headers, all documents are L's.
//	       │    The effective partition key of each document is computed, as a check.
//	       │    A document outside N is delivered, and reported once: Page.Doubt
//	       │
//	       └─ L is a part of N: EPK headers, unless the service has refused them
//	            (400), and each document is L's or another lease's by its
//	            computed key. The read fails, so that the range is
//	            visibly stuck, if a key cannot be computed (no value,
//	            hierarchical, hash version 1), lies outside N, or Page.Doubt
//	            was ever set
//
// So nothing depends on the computed keys unless a lease is a part of a range, because a
// mistake in them would lose documents silently. There they have been checked where that is
// possible. The list of ranges may be of any age: the id in the reply itself decides, and
// the bounds of an id never change. Two leases that share a physical range divide its
// documents with one function. Two leases that do not share one have nothing to divide.
//
// The check costs the hash of a key, some 50 ns for a UUID, for every document.
//
// # Goroutines
//
// None. Feed and LeaseStore are safe for concurrent use. They hold only the container's
// identity, the bounds of its ranges, and the first doubt.
package cosmosfeed
