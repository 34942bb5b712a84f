// Package sqs publishes events to a FIFO queue of Amazon SQS, or to a FIFO topic of Amazon SNS with FIFO
// queues, and consumes them in the order of their keys.
//
//	event ──▶ message: group id = key, deduplication id = event id, body = the event as stored
//
//	relay ──▶ queue ──▶ consumers        all consumers share the events
//
//	relay ──▶ topic ─┬▶ queue billing  ──▶ consumers of billing       each queue receives all events,
//	                 └▶ queue shipping ──▶ consumers of shipping      and has its own dead letters
//
// The message attributes are those of CloudEvents, named as in its binding for AMQP 1.0, and
// traceparent, sequence, aggregateVersion and partitionKey if known.
//
// SQS delivers a message group in order. For five minutes it accepts and drops messages with the same
// deduplication id, so a repeated send within that window has no effect. The consumer's inbox drops
// later repeats.
//
// A request contains up to ten messages of different keys. It must not contain two messages of a key,
// because a request may fail for some of its messages, and a later message of a key must not overtake
// a failed one. Requests run concurrently. A message counts as sent after the response lists it as
// successful.
//
// SQS does not accept every event. A body must be XML 1.0 text, so some characters are refused
// (Refused, "invalid_characters"). A key that is not a valid group id is replaced by its hash
// (GroupID). A message may be as large as the MaximumMessageSize of the queue, at most 1 MiB. Queues from
// before August 2025 have 256 KiB until it is raised; raise that of the dead-letter queue first.
//
// # Topics
//
// DeclareTopic creates a topic, its queues and what they need. Deliveries are raw, so that a queue contains
// the same messages as without a topic, and the same Consumer reads them. SNS keeps the order of a message
// group for each queue, and accepts and drops repeats for five minutes.
//
// An event counts as sent when the topic has accepted it. After that, SNS retries a delivery only if SQS
// fails. An event for a queue that does not exist, or whose policy does not permit the topic, goes to the
// dead-letter queue of the subscription, or is discarded if there is none. The relay cannot notice this,
// and other queues are not affected. `feedbox doctor` examines each subscription.
//
// # Silence
//
// A send takes at most 15 s (SendTimeout), which is enough for a request of 1 MiB at 0.6 Mbit/s, and
// another request 10 s (requestTimeout) with its retries. A receive request also waits for Wait, and
// Declare takes at most a minute. net/http closes the connection of an HTTP/1.1 request that timed out.
// It keeps an HTTP/2 connection, so a client with HTTP/2 should send pings (http.HTTP2Config), as that
// of `feedbox relay` does.
//
// # Consuming
//
// A Consumer receives up to ten events per request. SQS delivers no further events of a group while
// one of its events is in flight.
//
//	a message:  [received] --first of its key--> [handled] --recorded in the inbox--> [settled] --deleted--> gone
//	               ^   |                            |   \__ dead letter accepted _______^    |
//	               |   |                            |                                        | delete failed
//	               +---|---------- backoff ---------+                                        v
//	                   +-- stop: released (visibility 0)                       redelivered: dropped
//
//	from every state, if the visibility is refused or not extended in time: contexts of handlers end
//	with consumer.ErrLockLost, and SQS redelivers the message to any consumer. The same happens to all
//	unsettled messages of its group, because they must not overtake it
//
// With Options.Park, refused events are parked instead of dead-lettered (package consumer). A process that
// finds the intent of an operator sends a message of type feedbox.wakeUp to the group of the key, whose
// receiver carries it out. Consumers then need the right sqs:SendMessage on their queue.
//
// Invariants:
//
//   - One event of a key is handled at a time. A failed event is retried in the process before later
//     events of its key, and all of them stay in flight. They are not released, because SQS counts
//     each receive towards maxReceiveCount: it would dead-letter later events that were never handled.
//   - The visibility of a message in flight is extended before half of it has passed, also of a settled
//     message. After a crash, a key waits until the visibility of its events ends.
//   - A message is deleted after its handler has returned and the inbox has recorded it, or after its
//     dead letter was accepted. A request deletes up to ten messages.
//   - At most MaxInFlight messages are in flight. A receiver only sends a request if there is room for
//     ten more.
//   - At a stop the running handlers return, settled messages are deleted, and the others are released.
//     Messages of a canceled receive request are redelivered when their visibility ends.
//
// Goroutines, all of which Run waits for: the receivers, one deleting goroutine per receiver, one that
// extends visibilities, and one per key that has events.
package sqs
