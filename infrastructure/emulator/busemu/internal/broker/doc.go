// Package broker is the engine of the Service Bus emulator: entities, messages, locks,
// sessions and their storage. It knows no AMQP and opens no sockets. The connection engine
// translates frames into calls on a [Broker], which calls back with deliveries and outcomes.
//
// # Scope
//
// The broker has queues, topics, subscriptions and their dead-letter queues; rules; sequence
// numbers; peek-lock, sessions and session state; duplicate detection; time to live,
// scheduling, deferral, quotas and counters; forwarding within the namespace; the deletion
// of idle entities; and the durable copy of all of it. Filters and actions are compiled by
// package sqlfilter.
//
// A message's payload is opaque to the broker and is delivered unchanged. The broker's own
// data (sequence number, lock, delivery count, properties set by a settlement) is in the
// [Delivery]; the connection engine writes it into the message.
//
// # Rooms
//
// From the top; a file uses only its own room and those below (tests/arch checks it):
//
//	api        operations on a path, transactions, loading     Broker
//	catalog    entities and their administration               catalog
//	intake     batches come in, are checked and routed         inlet
//	holder     messages wait, are delivered and settled        holder, Receiver
//	stock      moves messages between lists, memory and disk   stock, sessionTable
//	engine     clock, timers, store                            engine
//	storage    records and their commit                        op, writer, store
//	messages   messages and the lists they are in              message, session, index
//	contract   types of the callers                            Options, Error, Message
//
// # The path of a message
//
//	Send ─▶ inlet ─────────▶ committer ─────────▶ holder ─────────▶ receiver
//	        checks, dedup,    one Pebble batch     ready list,       Deliver, under
//	        sequence numbers  for many senders,    sessions          the holder's lock
//	        (inlet.mu)        one fsync            (holder.mu)
//
// Each queue and each topic has one inlet, which accepts messages. Each queue, subscription
// and dead-letter queue is a holder, which stores them. A message becomes visible to
// receivers, and the sender's done is called, only when the message is durable. In memory
// mode there is no committer: both happen before Send returns.
//
//	message:  scheduled ─▶ ready ─▶ locked ─▶ gone
//	                         ▲        │  ├──▶ deferred ─▶ locked
//	                         └────────┘  └──▶ dead-letter queue
//
//	session:  idle ─▶ available (ready messages, no receiver) ─▶ held ─▶ …
//
// # Invariants
//
//   - Within one holder and partition (see partition.go) sequence numbers rise and are never
//     used twice, also after a restart. Messages of a session are delivered in their order.
//     A message that is abandoned or released, or whose lock expires, returns to its place.
//   - A message is in exactly one of: ready, locked, deferred, scheduled. With storage, a
//     ready, deferred or scheduled one may be swapped out, which no client can observe.
//   - done(nil) of a settlement or a send means that it is durable.
//   - After a restart messages that were locked are ready again with their delivery count;
//     their lock tokens are void.
//   - A duplicate (same message id within the window, counted from the first copy) is
//     acknowledged like any other message and dropped, after the first copy is durable.
//
// # Goroutines and locks
//
// Each inlet and each holder has its own mutex; a message passes no lock that all entities
// share. Order: catalog before inlet before holder before the holder's dead-letter holder;
// timers and the committer's queue come last. No mutex is held during a write. Swapped out
// messages are read with the holder's mutex held, because that waits for no write. Work that
// needs locks in another order (forwarding, activating scheduled messages) and all callbacks
// except Deliver are collected in callbacks and run when all locks have been released.
//
// An open broker runs one timer goroutine (lock expiry, time to live, schedules, accept
// timeouts, duplicate windows). With storage it runs two more: the committer merges all
// pending ops into one batch, and the publisher makes committed ops visible and calls done,
// in commit order. Close stops all of them and waits for them.
//
// Callbacks must not block. ReceiverOptions.Deliver is called with the holder's lock held
// and must not call the broker. All other callbacks are called without the broker's locks
// and may call it; they may run before the function that received them returns.
//
// # Storage
//
// Pebble, see keys.go and record.go. In memory mode nothing is encoded or stored; all other
// code is the same. A store that fails stops the broker: every later request gets
// InternalError. Package disk opens the store, detects damage and reports failures.
//
// # Memory
//
// With storage, the messages in memory may take [Options.CacheBytes], in all holders
// together. A message that arrives when that is full and is not delivered at once is swapped
// out: only its records remain, and the holder keeps the little that it needs to find them.
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
//	    ▲      deferred, once that is durable       │
//	    └───────────────────────────────────────────┘
//	       next to deliver, requested by number, expired or due
//
// A partitioned entity has a table of chunks for each partition, and without sessions a
// ready list for each.
//
// That is one byte a message for the index and one to three for the ready list. Peeking and
// browsing read a message without moving it. A message that returned after a delivery stays
// in memory, because no more of those exist than were locked at a time. A payload for
// several subscriptions is stored once; shares counts its messages in two bytes. Duplicate
// detection takes about 45 bytes an id during its window. All of these shrink when messages
// and ids are gone.
package broker
