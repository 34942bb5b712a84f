// Package rabbitmq sends events to RabbitMQ in the order of their keys.
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
// the header cloudEvents_type.
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
// # A failure
//
// verdict.go has the table from what the broker says to what the relay does.
package rabbitmq
