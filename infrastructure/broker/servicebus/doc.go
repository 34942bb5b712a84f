// Package servicebus publishes events to an Azure Service Bus topic. It implements
// relay.Publisher; the package below it, subscriber, is the kit for those who receive.
//
// Message: body = the event's data as stored; message id = event id; session id and
// partition key = partition key of the aggregate; subject = action; content type
// application/json; application properties are those of CloudEvents, and traceparent,
// sequence and aggregateVersion where the event has them.
//
// The publisher speaks AMQP through go-amqp, since azservicebus does not tell how a
// delivery ended. All publishers of a Client share one connection (package wire), each
// with a link of its own:
//
//	connection  [none] --needed--> [open] --has ended, seen by whoever meets it--> [none]
//
//	link        [none] --needed: token, attach--> [attached] --ended, token refused, a send cut short--> [none]
//
//	a send      [fence] --> [sent] --accepted--> done
//	               ^          |
//	               |          +--link had ended, for a passing reason, the first time--> [connect] --+
//	               |          +--anything else--> verdict (errors.go)                                 |
//	               +----------------------------------------------------------------------------------+
//
// Invariants of Publisher:
//
//   - At most one batch of a key is in flight, so a session's messages are accepted in
//     their order. Keys do not wait for each other.
//   - A batch that would be too large is cut, between messages and in order. One
//     message that is too large by itself is refused, and only its key stops.
//   - A message counts as sent only if the broker's disposition was accepted.
//   - A refused batch is taken apart, by key and then by message, until the refused
//     message is known. What stands before it is accepted.
//   - What is refused when a link is opened is no fault of a message.
//   - The failure of one key does not stop the others. A broker that cannot be reached is
//     tried once a call.
//   - The context of the call bounds every send, and no send starts after it ended, a
//     second try neither. A publisher that may have lost its lease must not send; its
//     deadline says when.
//   - Message ids, and all else in a message, are the same on every attempt.
//   - Behind the begin of a message that was cut short nothing is sent on its link.
//
// When to send again is decided by the caller, but for the one second try.
//
// Goroutines: Publish runs up to 64 of them and waits for all before it returns. The
// connection has some of its own (package wire), which Client.Close waits for.
package servicebus
