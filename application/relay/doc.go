// Package relay is the use case between the change feed and the broker: it takes
// the changes of a feed range, picks out the domain events and has them published.
//
// What it owns: which document is an event, in what order the events of a key leave,
// what a failure means, and what becomes of events that cannot be sent. What it does not
// own: leases, attempts and checkpoints (package changefeed), the stored shape of
// documents (ports Decoder and Lot) and the broker (port Publisher).
//
//	changes ─▶ decode ─▶ by key, in order ─▶ key parked? ─no─▶ Publisher
//	                                             │yes             │ outage: pause, the rest again
//	                                             ▼                │ refused: *BatchError; the
//	                                            Lot ◀── Park ─────┘ processor counts and calls Park
//	                                             │
//	                          an operator's intent ─▶ Drainer ─▶ Publisher, then the gate opens
//
// Invariants:
//
//   - Handle returns nil only when each event among the changes it was given has been
//     accepted by the broker, or stands behind the gate of its key. The caller may then
//     move its checkpoint past them.
//   - Events of one key leave in the order of the feed, those of one transaction, which
//     share an LSN, by sequence. An event that cannot be sent holds back the later events
//     of its key, and no other key.
//   - A message is the same on every attempt: same id, same key, same bytes. The
//     broker's duplicate detection rests on that.
//   - The body is the stored bytes. Nothing is decoded that is only passed on.
//   - An outage spends no attempts. A failure that does not tell whose fault it is
//     counts as the message's only if it hits one key while others pass. A refusal that
//     does not tell it counts as the message's until it has hit three keys without any
//     message being accepted in between; then it is an outage that a person must end.
//   - While a gate is closed only the holder of its claim sends events of the key. It
//     opens only if nothing has come behind it since it was found empty.
//
// What is not promised: that no event is sent twice, or late. A sender that stood still
// after the last check of its context may send what its successor has sent already.
// Inside the broker's duplicate window that is dropped; behind it the consumer's inbox
// has to.
//
// A Message aliases the raw document it was decoded from. It is valid until Handle
// returns; a Publisher keeps no part of it.
//
// The package starts no goroutine. A Relay is safe for concurrent use, as long as
// no two concurrent calls carry the same key: lanes and lease ownership see to that. A
// Drainer runs in its caller's goroutine.
package relay
