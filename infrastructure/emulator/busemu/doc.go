// Package busemu is an emulator of Azure Service Bus to be embedded in Go tests and
// development tools.
//
//	srv := busemu.StartT(t)
//	_ = srv.CreateQueue(ctx, busemu.Queue{Name: "orders", RequiresSession: true})
//	client := srv.Client() // *azservicebus.Client
//
// It starts in milliseconds and keeps its messages in memory, or on disk with
// Options.DataDir. Entities come from Options.Topology, LoadConfig (the official
// emulator's Config.json), the Create methods or the admin API. Send, Peek, Counters and
// Dump act beside the wire. Control makes operations go wrong: see Fault. Advance,
// Detach, Disconnect, ExpireLock, ExpireSession, ExpireTokens, SetStatus and SetQuota
// make the world do so. Failed tells when a disk gives up.
//
// In a testing/synctest bubble use Options{Addr: "-", AdminAddr: "-"} and Client,
// or pipenet listeners.
//
// # Protocol
//
// It speaks AMQP 1.0 as the service does, so the vendor's SDKs talk to it unchanged:
// queues, topics, sessions, duplicate detection, dead-letter queues, schedules,
// forwarding, and the admin API. What is not supported is refused with
// amqp:not-implemented or a text that says so: see UNSUPPORTED.md.
//
// # Layers
//
//	amqp/             codec: bytes to types and back, no I/O
//	this package      connections, sessions, links, $cbs, $management, admin API
//	internal/broker   entities, locks, sessions, storage; no AMQP
//	../internal       the store on disk, and faults: the same for both emulators
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
