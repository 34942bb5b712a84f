// Package rabbitmq publishes events to RabbitMQ and consumes them in the order of their keys.
//
// # Routing
//
//	relay ──▶ direct exchange ──▶ "3f" ──┬─▶ queue billing.0   bound to 00 … 7f
//	                                     └─▶ queue billing.1   bound to 80 … ff
//
// The routing key of a message is the slot of the event's key, in two hex digits. There are always
// 256 slots; the slot is a byte of the FNV-1a hash of the key. A consumer group (Group) divides the
// slots among any number of queues. Each queue has a single active consumer, so all events of a key
// go to one queue and one consumer at a time. The slots let a group choose its number of queues
// without a change of the relay. To consume only some actions, bind a headers exchange to all slots
// and a queue to that exchange by the header action. Packed messages have no such header.
//
// # Messages
//
//	body         the event as stored, JSON        content type   application/json
//	message id   event id                         type           action
//	app id       Source of the publisher          timestamp      creation time, in whole seconds
//	headers      action; partitionKey, sequence, aggregateVersion, createdAt and traceparent if known
//
// CloudEvents attributes are not sent as headers, because CloudEvents has a binding for AMQP 1.0 but
// none for AMQP 0-9-1. Its id, type and source are the properties above. Its time, with fractions of
// a second, is the header createdAt.
//
// # Packed messages
//
// With PublisherOptions.PackKeys the events of one slot that are in one call of Publish share a message:
//
//	ready        slot 3f: a1 a2, b1, c1          slot 40: d1
//	check        b1 is too large: only b fails
//	sent         [a1 a2 c1]                      d1, as without the option
//	confirmed    a, c: sent                      d: sent
//	refused      a, c: failed with one reason    d: failed
//
// The body is a batch in the JSON format of CloudEvents (application/cloudevents-batch+json), as that of package
// push: attributes partitionkey, keysequence, aggregateversion, and data as stored. The message has the type of
// its first event, the id "batch." and that event's id, and no header but the slot. It has at most 100 events
// and 64 KiB, and never more than MaxMessageBytes. These events are sent alone: one that is the only one of its
// slot in the call, that failed before (relay.Group.Alone), that is larger, or that JSON would change, such as
// one with white space around its body. So the latency and the form of events at low load do not change.
//
// All events of a slot go to the same queue of each group, and a message is accepted or refused as a whole. If
// the broker closes the channel because of a packed message, no key is refused: the relay sends the keys again,
// each alone, and the broker then refuses only the event at fault.
//
//	a message  [received] --fewer than Prefetch events--> [unpacked] --all its events settled--> acknowledged
//	                                                          \__ unreadable: dead letter confirmed --> acknowledged
//	an event   as if it had come alone: see Consuming
//
// A consumer reads packed messages whether or not the publisher has the option. An earlier version cannot: it
// passes the batch to the handler as one event without a key, which the handler refuses, or completes if it
// ignores the action. So upgrade all consumers before you set the option. To return to an earlier version,
// remove the option first and wait until the queues are empty.
//
// A dead letter has one event, in the form in which it would have come alone. A message that cannot be read, or
// has more than 1,000 events, becomes a dead letter as a whole ("undecodable"); feedbox deadletters edit
// corrects and sends it again. If a consumer ends before all events of a message are settled, all of them are
// delivered again, and the inbox drops those that were handled. With an inbox in memory they are handled again.
//
// A headers exchange cannot match the action of packed messages, and AMQP cannot list its bindings. So its
// queues do not receive them, and nothing reports that: do not use the option with such an exchange.
//
// # Delivery guarantees
//
// A message counts as sent after the broker has confirmed it. A quorum queue confirms when a majority
// of its members has written the message to disk. Every message is mandatory: if no queue is bound for
// it, the broker returns it, and its key is blocked ("no_queue") until there is a queue.
//
// Each key has events in at most one unconfirmed message, because a broker that refuses one message may accept
// the next: a full queue does so while a consumer reads from it. Messages of different keys are
// confirmed concurrently, on several channels.
//
// # Silence
//
//	channel     [open] --timeout: closed, new channel--> [open]
//	connection  [confirmed] --timeout--> [1] --timeout: new connection, also for other channels--> [confirmed]
//	                 ^                    |
//	                 +----a confirmation--+
//
// If the client has the URLs of several members of a cluster, a new connection goes to the member after
// the last, and to the others in turn if that one does not reply. A broker that is short of memory or disk is not
// silent: see alarm.go. Its messages fail with the reason "broker_full", and the log has the cause.
//
// A timeout is a wait of 15 s without a confirmation on a channel (SendTimeout). Each reply to another
// request may take 15 s (requestTimeout), a connection 15 s (dialTimeout), a write 10 s (writeTimeout),
// a close 2 s (closeTimeout), and Declare 5 minutes. A broker that takes longer loses the connection,
// because the client library waits without a limit as long as heartbeats arrive.
//
// RabbitMQ does not detect duplicates. If a confirmation is lost, the message is sent again and is in
// the queue twice, with the same message id. The consumer's inbox drops the second one.
//
// # Consuming
//
// A Consumer has one channel for each queue of its group. All consumers of a group subscribe to all
// its queues; the broker delivers each queue to one of them.
//
//	a queue:   [connecting] --subscribed--> [receiving] --stop--> [draining] --handlers returned--> closed
//	                ^                            |                    |
//	                +--- backoff -- [lost] <-----+--- channel ended --+
//
//	an event:  [unacknowledged] --first of its key--> [handled] --recorded in the inbox--> acknowledged
//	                 ^                                    |   \__ dead letter confirmed --> acknowledged
//	                 +------------- backoff --------------+
//
//	from [unacknowledged] and [handled], if the channel ends: contexts of handlers end with
//	consumer.ErrLockLost, and the broker redelivers the event to any consumer
//
// Invariants:
//
//   - One event of a key is handled at a time. A failed event is retried in the process before later
//     events of its key, which stay unacknowledged. It is not rejected, because RabbitMQ would requeue
//     it after messages that it has already delivered. Other keys are handled until Prefetch events
//     of the queue are waiting.
//   - An event is acknowledged, with the others of its message, after its handler has returned and the inbox has recorded it, or after
//     the broker has confirmed its dead letter. If the acknowledgement is lost, the inbox drops the
//     redelivered event.
//   - After a channel has ended, its events are no longer handled. A redelivered event waits until the
//     running handler of its key has returned.
//   - At a stop, the subscription stays open until the running handlers have returned and their events
//     are acknowledged. Otherwise another consumer would receive later events of the same key too
//     early. Then the channel is closed, and the broker requeues the remaining events in order. If the
//     subscription ends before, contexts of handlers end as above, and the consumer does not subscribe again.
//
// # Slow handlers
//
// A message may be unacknowledged for 30 minutes (consumer_timeout of the broker), including the handlers and
// backoffs of earlier events of its keys, and the wait for the messages before it. After that the broker closes
// the channel of the queue: running handlers are aborted, and all its messages are redelivered. If one key has
// all events, or Concurrency is not above the number of queues, the wait is up to
//
//	Prefetch * events per message * time of a handler
//
//	256 messages of one event      30 minutes are reached by handlers of 7 s
//	256 messages of 100 events     70 ms; publishers with PackKeys send these during a backlog
//	 16 messages of 100 events     1.1 s
//
// If handlers may be slower, lower Prefetch or raise consumer_timeout. The consumer does not lower the number of
// messages when it sees packed ones: of those that a channel has returned, it would receive fewer, and if that
// channel ended too, the broker would insert these after the others, in a different order.
//
// # Consumers that crash
//
// The queues have no delivery limit in the broker, because it would also count events that were prefetched
// and never handled. RabbitMQ 4 has a limit of 20 unless a queue is declared with -1, as Declare does. So
// has a queue of RabbitMQ 3 after the upgrade: replace it, or set a policy with a high delivery-limit.
//
// With Group.DeliveryLimit the consumer counts in its inbox, once the broker has delivered an event more
// often than the limit. So it dead-letters the event after at most twice the limit of calls of handlers. Each
// event of a packed message is counted on its own, so the others are handled.
//
// # Parked keys
//
// With Options.Park, refused events are parked instead of dead-lettered (package consumer). A process that
// finds the intent of an operator sends a message of type feedbox.wakeUp to the queue of the key, without
// the exchange: it needs the right to write to the default exchange, as dead letters do. The active consumer
// receives it after the messages before it in the queue.
//
// # Changing queues
//
// Declare fails if the queues of a group exist with other arguments or in another number. A consumer for fewer
// queues than there are logs an error when it subscribes, because the events of the others wait without a
// consumer. To see that, a process asks once for a queue that should not exist, which the broker logs. Queues are replaced as follows. The order of each key is kept, because no event is in a queue meanwhile.
//
//  1. Stop the relay. Events stay in the store.
//  2. Wait until the queues of the group are empty: rabbitmqctl list_queues name messages
//  3. Stop the consumers of the group.
//  4. Delete its queues: rabbitmqctl delete_queue NAME
//  5. Call Declare, and start the consumers and the relay.
//
// # Errors
//
// errors.go contains the table from reply codes of the broker to error classes of the relay.
package rabbitmq
