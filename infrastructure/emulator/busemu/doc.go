// Package busemu is an Azure Service Bus emulator to be embedded in Go tests and
// development tools: a broker that the vendor's SDKs talk to by AMQP 1.0, with
// queues, topics, sessions, duplicate detection and dead-letter queues, in memory
// or durable.
//
//	srv := busemu.StartT(t)
//	_ = srv.CreateQueue(ctx, "orders", busemu.QueueProperties{RequiresSession: true})
//	client := srv.Client() // *azservicebus.Client
//
// Topologies come from Options.Topology, LoadConfig (the official emulator's
// Config.json), the Create methods or the admin API. Send, Peek, Counters and Dump
// act beside the wire. Control and Fail make operations on the wire go wrong;
// Advance, Detach, Disconnect, ExpireSession, SetStatus and SetQuota make the world
// do so.
//
// In a testing/synctest bubble use Options{Addr: "-", AdminAddr: "-"} and Client,
// or pipenet listeners.
//
// UNSUPPORTED.md lists what the service does and this package does not. What is
// not supported is refused with amqp:not-implemented or a text that says so.
//
// # Layers
//
//	amqp/             codec: bytes to types and back, no I/O
//	this package      connections, sessions, links, $cbs, $management, admin API
//	internal/broker   entities, locks, sessions, storage; no AMQP
//
// # Goroutines
//
// One accepts on each listener. Each connection has three: a reader that cuts the
// stream into frames, a loop that owns the connection's sessions and links, and a
// writer. A broker callback runs on whatever goroutine the broker has at hand and
// only posts to the loop:
//
//	socket ─▶ reader ─frames─▶ loop ─calls─▶ broker
//	socket ◀─ writer ◀─bytes── loop ◀─posts── broker's callbacks
//
// The loop hands the writer all output that has gathered while the writer was
// busy, so that a loaded connection writes few and large pieces. A peer that does
// not read stops being read from, and messages for it stay in their entities.
//
// Close ends the connections, waits for all goroutines and closes the broker.
package busemu
