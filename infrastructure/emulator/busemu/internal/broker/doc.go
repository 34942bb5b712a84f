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
//   - Within one holder and partition (see partition.go) sequence numbers rise, are never
//     used twice, also not after a restart, and messages of a session are delivered in
//     their order. A message that is given back (abandoned, released, lock expired) goes
//     to its old place.
//   - A message is in exactly one of: ready, locked, deferred, scheduled. With storage,
//     a ready, deferred or scheduled one may be swapped out; that changes nothing that a
//     client sees.
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
// held while something is written; messages that are swapped out are read with the
// holder's mutex held, which waits for no write. Work that needs locks in another order (forwarding, activating
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
// stored; everything else is the same code. A store that fails stops the broker: every
// later request is answered with InternalError. Package disk opens the store, finds
// damage and tells what failed.
//
// # Memory
//
// With storage, the messages that wait may take [Options.CacheBytes] in memory, in all
// holders together. Those that come when that is full are swapped out once nobody has
// taken them at once: their records are the message, and the holder keeps only what it
// needs to find them.
//
//	index (of a holder)      ready list (of a holder       Pebble
//	                          without sessions, or of
//	chunk: 64 numbers         one session)
//	 inMemory  0001 ─slots──▶ head ⇄ … ⇄ tail  message ── body: payload
//	 swapped   1110           returned: heap   in memory
//	 deferred  0100           swapped: first, last, ────▶ m holder sequence
//	 scheduled 1000           +3 +1 +7 …                  m holder sequence 's'
//	 recorded  0100                                       p topic sequence (shared)
//	 wake      the first time
//	           that one is due
//
//	           arrives, and the cache is full
//	in memory ────────────────────────────────▶ swapped out
//	    ▲      set aside, once that is durable      │
//	    └───────────────────────────────────────────┘
//	       its turn comes, it is asked for by number, or it expires or is due
//
// An entity that is partitioned has a table of chunks, and without sessions a ready list,
// for each partition.
//
// That is a byte for the index and one to three for the ready list a message. Peeking and
// browsing read a message and leave it where it is. What came back after a delivery
// stays in memory: there is no more of it than was locked at a time. A payload that
// several subscriptions wait for is stored once; shares counts its messages in two
// bytes. Duplicate detection takes about 45 bytes an id, for as long as its window
// lasts. All of these shrink when the messages and ids are gone.
package broker
