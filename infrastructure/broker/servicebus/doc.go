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
// The caller decides when to retry, except for the one retry after a link had ended.
//
// Limits: 15 s for a send, in which a message of 1 MB needs 0.6 Mbit/s; 30 s to connect and attach
// (wire.ConnectTimeout), about 10 round trips; 10 s for a token or another request; 1 s to close.
//
// Goroutines: Publish starts up to 64 and waits for all of them. The connection has its own (package
// wire), which Client.Close waits for.
package servicebus
