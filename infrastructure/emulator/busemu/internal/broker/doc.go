// Package broker is the engine of the Service Bus emulator: entities, messages,
// locks, sessions and their storage. It speaks no AMQP and opens no sockets; the
// connection engine translates frames into calls on a [Broker] and is called back
// with deliveries and outcomes.
//
// # What it owns
//
// Queues, topics, subscriptions and their dead-letter queues; rules and filters;
// sequence numbers; peek-lock, sessions and session state; duplicate detection;
// time to live, scheduling, deferral, quotas and counters; and the durable copy of
// all of it; forwarding within the namespace and the deletion of idle entities. A
// message's payload is opaque to the broker: the bytes that went in
// come out. What the broker adds (sequence number, lock, delivery count, properties
// set when a message was abandoned or dead-lettered) travels beside the payload in
// a [Delivery]; writing it into the message is the connection engine's work.
//
// # The path of a message
//
//	Send ─▶ inlet ─────────▶ committer ─────────▶ holder ─────────▶ receiver
//	        checks, dedup,    one Pebble batch     ready list,       Deliver, under
//	        sequence numbers  for many senders,    sessions          the holder's lock
//	        (inlet.mu)        one fsync            (holder.mu)
//
// A queue and a topic each have one inlet, the place where messages come in. Every
// queue, subscription and dead-letter queue is a holder, the place where messages
// wait. A message becomes visible to receivers, and its sender's done is called,
// only after it is durable. In memory mode there is no committer and no storage:
// both happen before Send returns.
//
//	message:  scheduled ─▶ ready ─▶ locked ─▶ gone
//	                         ▲        │  ├──▶ deferred ─▶ locked
//	                         └────────┘  └──▶ dead-letter queue
//
//	session:  idle ─▶ available (has ready messages, nobody holds it) ─▶ held ─▶ …
//
// # Invariants
//
//   - Within one holder sequence numbers rise, are never used twice, also not after a
//     restart, and messages of a session are delivered in their order. A message that
//     is given back (abandoned, released, lock expired) goes to its old place.
//   - A message is in exactly one of: ready, locked, deferred, scheduled.
//   - A settlement's done(nil) means that it is durable. So does a sender's.
//   - After a restart messages that were locked are ready again with the delivery
//     count they had; their lock tokens are void.
//   - A duplicate (same message id within the window, counted from the first copy) is
//     acknowledged like any other message and dropped. The first copy's durability is
//     awaited first.
//
// # Goroutines and locks
//
// Each inlet and each holder has its own mutex; there is no lock over all of them on
// the path of a message. Order: catalog before inlet before holder before the
// holder's dead-letter holder; timers and the committer's queue come last. No mutex is
// held during I/O. Work that needs locks in another order (forwarding, activating
// scheduled messages) and all callbacks but Deliver are collected in callbacks and run
// when every lock has been let go.
//
// An open broker runs one timer goroutine (lock expiry, time to live, schedules,
// accept time-outs, duplicate windows). With storage it runs two more: the
// committer, which merges everything that is waiting into one batch, and the
// publisher, which makes committed work visible and calls done, in commit order.
// Close stops and awaits all of them.
//
// Callbacks must not block. ReceiverOptions.Deliver is called with the holder's lock
// held and must not call into the broker. All other callbacks are called without any
// of the broker's locks and may; they may be called before the function that took
// them returns.
//
// # Storage
//
// Pebble, see keys.go and record.go. In memory mode nothing is encoded and nothing is
// stored; everything else is the same code. With storage, messages are held in memory
// too: a backlog must fit. A store that fails stops the broker: every later request is
// answered with InternalError. Package disk opens the store, finds damage and tells
// what failed.
package broker
