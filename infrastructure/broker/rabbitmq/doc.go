// Package rabbitmq sends events to RabbitMQ and receives them, in the order of their keys.
//
// # Where events go
//
//	relay ──▶ direct exchange ──▶ "3f" ──┬─▶ queue billing.0   bound to 00 … 7f
//	                                     └─▶ queue billing.1   bound to 80 … ff
//
// A routing key is the slot of the event's key, two hex digits. The slots are 256, by FNV-1a of
// the key, and never change; a group of consumers deals them out to as many queues as it likes
// (Group), each with a single active consumer. So the events of a key meet one queue and one
// consumer at a time, and a group chooses its number of queues without asking the relay. Who
// wants events of some actions only binds a headers exchange to all slots, and a queue to that by
// the header action.
//
// # A message
//
//	body         the event as stored, JSON            content type   application/json
//	message id   the event's                          type           its action
//	app id       Source: where events come from       timestamp      when it was created, in whole seconds
//	headers      partitionKey, sequence, aggregateVersion, traceparent, as far as they are known; action
//
// CloudEvents has a binding for AMQP 1.0 and none for AMQP 0-9-1, so its attributes are not sent
// as headers: id, type and source are the properties above, and its time, to the fraction of a
// second, is createdAt in the body.
//
// # What is promised
//
// A message counts as sent once the broker has confirmed it, which a quorum queue does when a
// majority of its members has it on disk. Every message is mandatory: one that no queue is bound
// for comes back, and its key waits (Blocked, "no_queue") until there is one.
//
// Of a key one message at a time awaits its confirmation, because a broker that refuses one
// message may accept the next: a full queue that is being read does. Confirmations of different
// keys are awaited together, over several channels.
//
// RabbitMQ has no duplicate detection. A message that is sent again after its confirmation was
// lost is in the queue twice, with one message id; the consumer's inbox drops it.
//
// # Receiving
//
// A Consumer has a channel for each queue of its group. All consumers of a group subscribe to all
// its queues; the broker gives each queue to one of them.
//
//	a queue:   [connecting] --subscribed--> [receiving] --stop--> [draining] --handlers ended--> closed
//	                ^                            |                    |
//	                +---- pause --- [lost] <-----+--- channel ended --+
//
//	an event:  [unacknowledged] --first of its key--> [handled] --marked in the inbox--> acknowledged
//	                 ^                                    |   \__ dead letter confirmed --> acknowledged
//	                 +-------- pause, key waits ----------+
//
//	from [unacknowledged] and [handled], channel ended: handlers find their context ended
//	(consumer.ErrLockLost), and the broker delivers again, here or elsewhere
//
// Invariants:
//
//   - Of a key one event is handled at a time. One that fails is handled again before what
//     follows it, which stays unacknowledged meanwhile; other keys go on, until Prefetch events of
//     the queue wait.
//   - An event is acknowledged after its handler and the inbox's mark, or after the broker has
//     confirmed its dead letter. What is delivered again after a lost acknowledgement, the inbox drops.
//   - What a channel that ended had delivered is not begun any more. What comes again waits until
//     a handler of its key that still runs has ended.
//   - At a stop the subscription stays until handlers have ended and acknowledged: given to another
//     consumer before, the queue would deliver what follows them. Then the channel is closed, and
//     what was not begun goes back, in its order.
//
// An event may be unacknowledged for 30 minutes (the broker's consumer_timeout), handlers and
// pauses of its key included; then the broker ends the channel.
//
// # A failure
//
// verdict.go has the table from what the broker says to what the relay does.
package rabbitmq
