// Package store keeps the databases, containers and documents of the Cosmos DB
// emulator. It does not depend on HTTP.
//
// # Layout
//
// All data is in one Pebble database; see keys.go. A document is stored once, as the bytes
// that a read returns, under its resource id, which increases with every insertion. Three
// indexes refer to it: by partition key and id, by id alone, and by LSN (the change feed). A read
// by partition key and id remembers the position of the document (hints in read.go).
//
// # Order
//
// A physical partition (Range) numbers its own transactions. Its log sequence number (LSN)
// increases by one with each commit, all writes of a batch share it, and other partitions do
// not affect it. So the difference of two LSNs of one partition is a number of transactions,
// from which readers estimate their lag.
//
// After a split each child continues at its parent's last LSN; after a merge the new range
// continues at the higher one. Neither writes documents, because a range owns a segment of
// the history, and a new range also reads the segments of its ancestors: restricted to its
// own bounds, in the order of LSNs. Therefore
//
//   - a position of a parent is valid on each child, with the same meaning;
//   - a position n of one parent, used on the merged range, reads the changes of both parents
//     after n. It misses nothing of its own parent, but may miss or repeat changes of the
//     other. A reader that resumes at the lower of both positions misses nothing and reads
//     some changes twice;
//   - LSNs of one logical partition always increase, over any number of splits and merges.
//
// Writers wait while the ranges change, and all applied writes are visible before the change.
// So no position can pass a change that becomes visible later.
//
// # Visibility and durability
//
// Writers of one container take turns (Container.writing); readers never wait for them. In
// memory, a commit is visible immediately. On disk, readers see the last state that has been
// fsynced, because a crash could undo any later one. Commits wait for the next fsync, which
// publishes a snapshot and then acknowledges all of them (durability.go).
//
// # Goroutines
//
// Open starts one goroutine, the sweeper, which frees the space of expired documents. Reads
// omit these already before the sweep. Close stops the sweeper and waits for it.
package store
