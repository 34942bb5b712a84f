// Package servicebus publishes events to an Azure Service Bus topic through the
// azservicebus client. It implements relay.Publisher; the package below it,
// subscriber, is the kit for those who receive.
//
// Message: body = the event's data as stored; message id = event id; session id and
// partition key = partition key of the aggregate; subject = action; content type
// application/json; application properties are those of CloudEvents, and traceparent,
// sequence and aggregateVersion where the event has them.
//
// Invariants of Publisher:
//
//   - At most one batch of a key is in flight, so a session's messages are accepted in
//     their order. Keys do not wait for each other.
//   - A batch that would be too large is cut, between messages and in order. One
//     message that is too large by itself is refused, and only its key stops.
//   - A message counts as sent only if the broker's disposition was accepted. The client
//     takes more for success, hence answers.go.
//   - A refused batch is taken apart, by key and then by message, until the refused
//     message is known. What stands before it is accepted.
//   - The failure of one key does not stop the others. A broker that cannot be reached is
//     tried once a call.
//   - The context of the call bounds every send, and no send starts after it ended.
//     A publisher that may have lost its lease must not send; its deadline says when.
//   - Message ids, and all else in a message, are the same on every attempt.
//
// What the client does by itself is cut to what it cannot do without (client.go):
// how often and when to send again is decided by the caller.
//
// Goroutines: Publish runs up to 64 of them and waits for all before it returns.
// The client keeps its own for connection, links and the refresh of its token until it
// is closed.
package servicebus
