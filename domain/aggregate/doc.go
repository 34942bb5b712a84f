// Package aggregate holds the common part of all aggregate roots: identity, version, the
// sequence of their events and the events of the next commit. An aggregate embeds [Root]:
//
//	type Order struct {
//		aggregate.Root
//		lines []Line
//	}
//
//	func (o *Order) AddLine(l Line, eventID uuid.UUID, now time.Time) error {
//		o.lines = append(o.lines, l)
//		aggregate.Record(&o.Root, LineAdded{l}, eventID, now)
//		return nil
//	}
//
// A commit takes two calls. Pending returns the next version and the events with their
// sequences, and changes nothing. Committed confirms that they are stored. No verb may be
// called between the two. A failed commit is not confirmed: the aggregate and its events stay
// as they were, and Pending returns the same again.
//
//	New ──verbs──▶ new ──Pending/Committed──▶ stored ──verbs──▶ changed ──Pending/Committed──▶ stored
//	                                            │
//	                                            └──MarkDeleted, Pending/Committed──▶ deleted (final)
//
// An aggregate that is created under the id of a deleted one continues the version and the
// sequence of that one ([Tombstone]), because consumers discard versions and sequences that
// they have seen before.
//
// Aggregates are not safe for concurrent use: each unit of work has its own.
package aggregate
