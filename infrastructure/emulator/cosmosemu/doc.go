// Package cosmosemu is an embedded emulator of Azure Cosmos DB for NoSQL: it
// speaks the gateway's HTTP protocol, so the vendor's SDKs talk to it unchanged.
//
//	srv := cosmosemu.StartT(t)
//	client := srv.Client() // a real *azcosmos.Client
//
// It starts in milliseconds, keeps its data in memory or on disk (Options.DataDir,
// with fsync before a write is acknowledged), and does what the outbox pattern
// stands on as the service does it: atomic batches, ETags, time to live, physical
// partitions that split and merge, and a change feed that never cuts a
// transaction. What it does not do it refuses: see UNSUPPORTED.md.
//
// # Files
//
// Each op_*.go file is one wire operation or a small family of them; route.go maps
// a request to one. Everything below HTTP is in internal: store (documents, LSNs,
// physical partitions), epk (effective partition keys), document (reading JSON
// without re-encoding it), query (the SQL subset).
//
// # Goroutines
//
// Start runs one net/http server, whose goroutines end with Close, and the
// store's sweeper. All of it can live in a testing/synctest bubble: give
// Options.Network, and each instance its own Host, for azcosmos shares its
// metadata caches between clients of one host name.
package cosmosemu
