// Package relay is the use case between the change feed and the broker: it takes
// the changes of a feed range, picks out the domain events and has them published.
//
// What it owns: which document is an event, in what order the events of a key
// leave, and what a failure means. What it does not own: leases and checkpoints
// (package changefeed), the stored shape of a document (port Decoder) and the
// broker (port Publisher).
//
// Invariants:
//
//   - Handle returns nil only when the broker has accepted every event of the
//     changes it was given. The caller may then move its checkpoint past them.
//   - Events of one key leave in the order (LSN, sequence). An event that cannot be
//     sent holds back the later events of its key, and no other key.
//   - A message is the same on every attempt: same id, same key, same bytes. The
//     broker's duplicate detection rests on that.
//   - The body is the stored bytes. Nothing is decoded that is only passed on.
//
// A Message aliases the raw document it was decoded from. It is valid until Handle
// returns; a Publisher keeps no part of it.
//
// The package starts no goroutine. A Relay is safe for concurrent use, as long as
// no two concurrent calls carry the same key: lanes and lease ownership see to that.
package relay
