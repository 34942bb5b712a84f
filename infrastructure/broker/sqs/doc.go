// Package sqs sends events to a FIFO queue of Amazon SQS and receives them, in the order of their
// keys.
//
//	event ──▶ message: group id = key, deduplication id = event id, body = the event as stored
//
// Attributes are those of CloudEvents, named as in its binding for AMQP 1.0, and traceparent,
// sequence, aggregateVersion and partitionKey, as far as they are known.
//
// A group is delivered in order, and a message whose deduplication id the queue has seen within
// five minutes is accepted and dropped, so a repeat within that window does no harm. Later ones
// are for the consumer's inbox.
//
// Up to ten messages go in a request, each of another key: a request may fail for some of its
// messages, and a later message of a key must not pass one that failed. Requests go beside each
// other. A message counts as sent once the answer names it as successful.
//
// The queue may not carry every event: a body is XML 1.0 text for the service, so a few
// characters are refused (Refused, "invalid_characters"), and a key that is no group id is sent
// as the hash of itself (GroupID).
//
// # Receiving
//
// A Consumer asks for ten events at a time. The service gives no other event of a group while one
// is with a consumer.
//
//	a message:  [received] --first of its key--> [handled] --marked in the inbox--> [settled] --deleted--> gone
//	               ^   |                            |   \__ dead letter accepted ____^    |
//	               |   |                            |                                      | not deleted
//	               +---|------ pause, key waits ----+                                      v
//	                   +-- stop: given back (visibility 0)                       comes again: dropped
//
//	from every state, visibility refused or not extended in time: handlers find their context ended
//	(consumer.ErrLockLost), and the service gives the message to any consumer
//
// Invariants:
//
//   - Of a key one event is handled at a time. One that fails is handled again here, before what
//     follows it, and both stay invisible for others: each receipt counts towards the queue's
//     maxReceiveCount, and given back with it, what follows would reach that without having been
//     handled once.
//   - What is held for longer than half of Visibility is extended, the settled included. After a
//     crash a key waits until the visibility of its events ends.
//   - A message is deleted after its handler and the inbox's mark, or after its dead letter was
//     accepted; up to ten in a request.
//   - At most Held messages are here. A receiver asks only if there is room for ten.
//   - At a stop handlers end, what is settled is deleted, and the rest is given back. What a
//     request that was under way has taken comes when its visibility ends.
//
// Goroutines, all of them waited for by Run: receivers, as many that delete, one that extends, and
// one for each key that has events.
package sqs
