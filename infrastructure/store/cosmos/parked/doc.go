// Package parked keeps parked events in a container of their own, partitioned by the key
// of the events, behind a gate for each key.
//
//	partition "b5e2e7aa-…":  $gate          why it is closed, how many wait, what is wanted
//	                         d6a5f4b2-…     a parked event, with its place in the line
//	                         $skipped-…     the record of one that was left out
//	partition "$closed":     1f0c9a7e…      a key that may be parked
//	                         $fence         what Closed writes before it reads
//
// What belongs together changes in one transaction that begins with the gate, guarded
// by its ETag: an event comes behind a gate only while it is closed, and a gate opens
// only while nothing is behind it. A Lot sees its own writes, by the session token
// of the last one of each range; another process may see them a little later, which the
// ETags make harmless.
//
// One thing no ETag guards: that a new owner of a range knows which keys its predecessor
// has parked. A query may be answered by a replica that is behind. So the closed keys are
// listed in one logical partition, whatever range they belong to:
//
//	to close   gate is absent ─▶ entry e ─▶ gate, which notes e ─▶ the owner's checkpoint
//	to open    the gate goes, under its ETag ─▶ entry e goes, if it is still e
//	to adopt   lease acquired ─▶ write $fence ─▶ read the entries at the fence's position
//
// An entry is stored before its gate, a gate before the checkpoint behind its event, and
// that before the successor has the lease: all entries that matter lie before the fence in
// the order of their partition, and a read at the fence's session token shows them.
// A process that stops between two of the writes leaves an entry too many, which costs the
// owner one look at the gate; sweep takes it away later. Each closing writes its entry
// anew, under another ETag: opening an earlier gate takes no later entry away. Splits and
// merges of the feed or of this container change nothing of it: the entries stand in one
// partition, and who reads them takes all. Session consistency or stronger is needed.
//
// That a gate is open is taken from the primary alone (Gate), since then its key is sent.
//
// Errors leave this package as faults. The package starts no goroutines.
package parked
