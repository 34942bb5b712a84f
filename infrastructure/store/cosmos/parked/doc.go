// Package parked keeps parked events in a container of their own, partitioned by the key of the
// events. Each parked key has a gate.
//
//	partition "b5e2e7aa-…":  $gate          why it is closed, number of events, the intent
//	                         d6a5f4b2-…     a parked event with its position
//	                         $skipped-…     the record of a skipped event
//	                         $event-…       a parked event whose id is no valid id of a document
//	partition "$closed":     1f0c9a7e…      the entry of a key that may be parked
//	                         $fence         written by Closed before it reads
//
// Each transaction begins with the gate, guarded by its ETag: events are added only while the
// gate is closed, and a gate opens only when it has no events. A Store sees its own writes, by
// the session token of the last write in each range. Another process may see them later, which
// the ETags make harmless. So a token that no replica reaches for a minute is forgotten: the writes
// that it names were lost by a failover.
//
// No ETag guarantees that a new owner of a range knows the keys that its predecessor has parked,
// because a lagging replica may answer a query. So the closed keys are listed in one logical
// partition, whatever range they belong to:
//
//	to close   gate is absent ─▶ entry e ─▶ gate, which refers to e ─▶ the owner's checkpoint
//	to open    delete the gate, by its ETag ─▶ delete entry e, if it is still e
//	to adopt   lease acquired ─▶ write $fence ─▶ read the entries at the fence's position
//
// An entry is stored before its gate, a gate before the checkpoint that passes its event, and the
// checkpoint before the successor has the lease. All entries that matter therefore precede the
// fence in the order of their partition, and a read with the fence's session token returns them.
//
// A process that stops between two of the writes leaves an unused entry. It costs the owner one
// read of the gate, and sweep deletes it later. Each closing writes its entry again, with another
// ETag, so opening an earlier gate does not delete a later entry. Splits and merges of the feed or
// of this container do not matter, because the entries are in one partition and a reader reads
// all of them. Session consistency or stronger is required.
//
// Every event that the outbox accepts can be parked: an event that compression does not make
// smaller is stored as it is, texts for operators are shortened, and the outbox refuses an event
// that leaves less than 64 KiB of the 2 MB that a transaction takes. An event of another writer may
// be larger. If it does not fit, Park fails with fault.TooLarge and the relay holds the key until an
// operator has replaced or deleted the document.
//
// Only the primary decides that a gate is open (Gate), because its key is sent then.
//
// Errors leave this package as faults. The package starts no goroutines.
package parked
