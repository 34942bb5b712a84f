// Package cosmosemu is an emulator of Azure Cosmos DB for NoSQL to be embedded in Go
// tests and development tools.
//
//	srv := cosmosemu.StartT(t)
//	_ = srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}})
//	client := srv.Client() // *azcosmos.Client
//
// It starts in milliseconds and keeps its data in memory, or on disk with
// Options.DataDir. Items and Dump look at the data beside the wire. Control makes calls
// go wrong: see Fault, and Throttled, RangeGone, LostReply and the like for the usual
// ones. Split, SplitAt and Merge change the physical partitions, Advance moves the clock,
// Options.StaleReads makes reads lag. Other processes reach all of that at
// ControlEndpoint. Failed tells when a disk gives up.
//
// In a testing/synctest bubble give Options.Network, and each instance its own Host, for
// azcosmos shares its metadata caches between clients of one host name.
//
// # Protocol
//
// It speaks the gateway's HTTP protocol, so the vendor's SDKs talk to it unchanged, and
// does what the outbox pattern stands on as the service does it: atomic batches, ETags,
// time to live, physical partitions that split and merge, and a change feed that never
// cuts a transaction. What it does not do it refuses: see UNSUPPORTED.md.
//
// # LSNs and positions
//
// Each physical partition counts its own transactions. An LSN is the number of one:
// the position of a change feed, the last part of a session token, _lsn of a change.
// The difference of two LSNs of a partition is a number of transactions, so what lies
// between the first open change and the session token is the lag. Where ranges split a
// child goes on at its parent's LSN, where they merge the new range at the higher one;
// package store says what positions of the parents mean there.
//
// # Files
//
// Each op_*.go file is one wire operation or a small family of them; route.go maps
// a request to one. Everything below HTTP is in internal: store (documents, LSNs,
// physical partitions), epk (effective partition keys), document (reading JSON
// without re-encoding it), query (the SQL subset). What is the same for both emulators
// is in ../internal: disk (the store on disk) and hooks (faults).
//
// # Goroutines
//
// Start runs one net/http server, whose goroutines end with Close, and the
// store's sweeper.
package cosmosemu
