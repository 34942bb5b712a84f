// Package aggregate holds what all aggregate roots share: identity, version, the
// sequence of their events and the events that wait for a commit. An aggregate embeds
// [Root]:
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
// Committing is a pair: Pending says what a commit has to store (the next version, the
// events with their sequences) and changes nothing; Committed confirms that it was stored.
// Between the two no verb may be called. A commit that failed is simply not confirmed: the
// aggregate and its events stay as they were and Pending gives the same answer again.
//
//	New ──verbs──▶ new ──Pending/Committed──▶ stored ──verbs──▶ changed ──Pending/Committed──▶ stored
//	                                            │
//	                                            └──MarkDeleted, Pending/Committed──▶ deleted (final)
//
// An aggregate that is created again under the id of a deleted one continues its version
// and sequence ([Tombstone]), also when nothing else is left of it.
//
// Nothing here is safe for concurrent use: each unit of work has its own aggregate.
package aggregate
