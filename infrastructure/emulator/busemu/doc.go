// Package busemu is an emulator of Azure Service Bus for Go tests and development tools.
//
//	srv := busemu.StartT(t)
//	_ = srv.CreateQueue(ctx, busemu.Queue{Name: "orders", RequiresSession: true})
//	client := srv.Client() // *azservicebus.Client
//
// It starts in milliseconds and keeps its messages in memory, or on disk with
// Options.DataDir. Entities come from Options.Topology, LoadConfig (the official emulator's
// Config.json), the Create methods or the admin API. Send, Peek, Counters and Dump bypass
// AMQP. Control injects faults into operations: see Fault. Advance, Detach, Disconnect,
// ExpireLock, ExpireSession, ExpireTokens, SetStatus and SetQuota cause events. Failed
// reports that the disk has failed.
//
// In a testing/synctest bubble use Options{Addr: "-", AdminAddr: "-"} and Client, or pipenet
// listeners.
//
// # Protocol
//
// It speaks AMQP 1.0 as the service does, so that the vendor's SDKs work unchanged: queues,
// topics, sessions, duplicate detection, dead-letter queues, schedules, forwarding, and the
// admin API. Anything else is refused with amqp:not-implemented or a text that says so: see
// UNSUPPORTED.md.
//
// # Layers
//
//	amqp/                 codec: bytes to types and back, no I/O
//	this package          connections, sessions, links, $cbs, $management
//	internal/admin        the admin API: ATOM over HTTP
//	internal/broker       entities, locks, sessions, storage; no AMQP
//	internal/sqlfilter    filters and actions of rules
//	internal/isoduration  ISO 8601 durations
//	../internal           the store on disk and fault hooks, shared with cosmosemu
//
// The files of this package form rooms, from the top; a file uses only its own room and
// those below (tests/arch checks it):
//
//	server      listeners, the admin port, direct access and events      Server
//	operations  $management                                              managementNode
//	links       connections, sessions, links, $cbs, transactions         conn, session, link
//	namespace   what all connections share                               namespace
//	values      messages, errors, rights, tokens, options, fault types
//
// # Goroutines
//
// Each listener has one goroutine, which accepts. Each connection has three: a reader that
// cuts the stream into frames, a loop that owns the connection's sessions and links, and a
// writer. A callback of the broker runs on any goroutine and only posts to the loop:
//
//	socket ─▶ reader ─frames─▶ loop ─calls─▶ broker
//	socket ◀─ writer ◀─bytes── loop ◀─posts── broker's callbacks
//
// Output accumulates while the writer is busy, so that a loaded connection writes few large
// pieces. From a peer that does not read, no input is taken either, and its messages stay in
// their entities.
//
// Close ends the connections, waits for all goroutines and closes the broker.
package busemu
