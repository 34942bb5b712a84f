// Package cosmosemu is an emulator of Azure Cosmos DB for NoSQL to be embedded in Go
// tests and development tools.
//
//	srv := cosmosemu.StartT(t)
//	_ = srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}})
//	client := srv.Client() // *azcosmos.Client
//
// It starts in milliseconds and keeps its data in memory, or on disk with
// Options.DataDir. Items and Dump read the data without the wire. Control injects faults:
// see Fault, and its common values such as Throttled, RangeGone and LostReply. Split, SplitAt
// and Merge change the physical partitions, Advance moves the clock, Options.StaleReads makes
// reads lag. LoseWrites, BeginRestore, FailOver and RemoveRegion reproduce disasters: see
// failover.go. ControlEndpoint offers all of this except Dump to other processes. Failed reports
// a failed disk.
//
// In a testing/synctest bubble set Options.Network, and give each instance its own Host,
// because azcosmos shares its metadata caches between clients of one host name.
//
// # Protocol
//
// The emulator speaks the HTTP protocol of the gateway, over HTTP/1.1 and HTTP/2, so the vendor's
// SDKs need no change.
// It behaves as the service in everything that the outbox pattern depends on: atomic batches,
// ETags, time to live, physical partitions that split and merge, and a change feed that never
// cuts a transaction. It refuses unsupported requests: see UNSUPPORTED.md.
//
// # LSNs and positions
//
// Each physical partition numbers its own transactions. An LSN is the number of one
// transaction: the position of a change feed, the last part of a session token, _lsn of a
// change. The difference of two LSNs of a partition is a number of transactions, so a reader
// computes its lag from the _lsn of its next change and the session token. After a split each
// child continues at its parent's LSN; after a merge the new range continues at the higher
// one. Package store explains the positions of the parents.
//
// # Files
//
// Each op_*.go file contains one wire operation or a small family of them. route.go maps a
// request to its operation, dispatch.go checks the request and calls the handler.
// tests/arch/rooms_emulators_test.go lists the layers of the package.
//
// The parts below HTTP are in internal: store (documents, LSNs, physical partitions), epk
// (effective partition keys), document (reading JSON without re-encoding it), patch (partial
// updates), query (the SQL subset), binaryjson and hybridrow (the .NET SDK's binary formats).
// Both emulators share ../internal: disk (the store on disk), hooks (faults) and selfsigned
// (certificates).
//
// # Goroutines
//
// Start runs a net/http server for each address and the sweeper of the store. All their
// goroutines end with Close.
package cosmosemu
