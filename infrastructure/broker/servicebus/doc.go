// Package servicebus publishes events to Azure Service Bus topics. It implements relay.Publisher.
// Package subscriber contains the consumer kit.
//
// A message has the event as stored as its body, the event id as message id, the partition key of the
// aggregate as session id and partition key, the action as subject, and content type
// application/json. Its application properties are the CloudEvents attributes, and traceparent,
// sequence and aggregateVersion if the event has them.
//
// The publisher uses go-amqp, because azservicebus does not return the outcome of a delivery. All
// publishers of a Client share one connection (package wire), and each has its own link:
//
//	connection  [none] --needed--> [open] --ended, detected by its next user--> [none]
//
//	link        [none] --needed: token, attach--> [attached] --ended, token refused, send canceled--> [none]
//
//	silence     [answered] --timeout--> [1] --timeout: new link--> [2] --timeout--> [3] --timeout--+
//	                 ^                   |                          |                |             |
//	                 +--any outcome on the current link-------------+----------------+             |
//	                 +--new connection-------------------------------------------------------------+
//
//	            timeout: the broker neither settled nor refused a send within 15 s, or did not attach
//	            the link. If the link was not attached, step 2 is a new connection at once.
//
//	a send      [check context] --> [sent] --accepted--> done
//	               ^                  |
//	               |                  +--link had ended, temporary reason, first time--> [connect] --+
//	               |                  +--anything else--> error (errors.go)                          |
//	               +---------------------------------------------------------------------------------+
//
// Invariants of Publisher:
//
//   - At most one batch of a key is in flight, so the broker accepts the messages of a session in
//     order. Keys do not wait for each other.
//   - A batch that would be too large is split between messages, in order. A single message that is too
//     large is refused, and only its key stops.
//   - A message counts as sent only if the broker settled it as accepted.
//   - A refused batch is sent again by key and then by message, until the refused message is found. The
//     messages before it are accepted.
//   - An error while a link is opened is never attributed to a message.
//   - The failure of one key does not stop others. A call makes one attempt to reach a broker that is
//     unavailable.
//   - The context of the call bounds every send, and no send or retry starts after it has ended. A
//     relay that may have lost its lease must not send, and its context has the deadline of the lease.
//   - A message has the same id and content on every attempt.
//   - A silent link or connection is replaced, because a new one often works at once. Its close waits
//     for the broker for a second at most, and other sends use the new link meanwhile.
//   - A replaced link may still deliver its messages. That keeps the order: all earlier messages of a
//     key were accepted before a message was first sent, so the first accepted copy of each message is
//     in order, on whichever link it arrives. The topic drops later copies by message id within its
//     duplicate detection window. Without duplicate detection, consumers need an inbox.
//   - Nothing is sent on a link after a canceled send, because the broker would treat it as the rest of
//     the incomplete message.
//
// # Shards
//
//	relay ──▶ slot of the key ──┬─▶ 00 … 7f   events-0             one subscription of each consumer
//	                            └─▶ 80 … ff   events-1@NAMESPACE   on every topic, one kit for each
//
// A namespace has a limited throughput, so the keys can be divided among several topics, also of several
// namespaces (RelayBrokerOptions.Shards). There are always 256 slots; the slot is a byte of the FNV-1a hash
// of the key, as with RabbitMQ. All events of a key go to one topic, so its session and the topic's
// duplicate detection keep their guarantees. Topics by action stay in the default namespace.
//
// Each shard has a breaker of its own in the relay (package relay). An outage of one shard parks none of
// its keys; their events wait. Keys of other shards are sent. Those that share a lane with a probe wait for
// its end, at most the limits below. If so many events wait that a range reaches its limit for held keys
// (package changefeed), its other keys wait, too.
//
// # Changing shards
//
// With another list, some keys go to other topics. A relay refuses to start with another list than the
// recorded one, which is beside the parked events. The list is changed as follows. The order of each key is
// kept, because no event is on a topic meanwhile.
//
//  1. Create the new topics and their subscriptions.
//  2. Stop all relays with SIGTERM. Events stay in the store. If a relay was killed, start one with the old
//     list, wait until the oldest unsent event of feedbox lag is younger than the kill, and stop it.
//     Otherwise the events after its last checkpoint are sent again, and a new topic does not drop them.
//  3. Wait until the subscriptions of the old topics are empty, including locked messages.
//  4. Start a consumer for each subscription of the new topics.
//  5. Set FEEDBOX_SERVICEBUS_SHARDS, run feedbox parked adopt for each container of the relays, and start
//     them. The command refuses while a lease has an owner.
//
// A message whose send was not answered before step 2, and which the topic had accepted, is on two topics
// then. The consumer's inbox drops the second one. Parked keys need nothing: their events are sent to the
// new topic of the key.
//
// The caller decides when to retry, except for the one retry after a link had ended.
//
// Limits: 15 s for a send, in which a message of 1 MB needs 0.6 Mbit/s; 30 s to connect and attach
// (wire.ConnectTimeout), about 10 round trips; 10 s for a token or another request; 1 s to close.
//
// Goroutines: Publish starts up to 64 and waits for all of them. The connection has its own (package
// wire), which Client.Close waits for.
package servicebus
