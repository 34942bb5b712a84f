// Package store keeps the databases, containers and documents of the Cosmos DB
// emulator. It knows nothing of HTTP.
//
// # Layout
//
// Everything lives in one Pebble database; see keys.go. A document is stored
// once, as the bytes a read returns, under its resource id, which grows with
// every insertion. Three indexes point at it: by partition key and id, by id
// alone, and by LSN (the change feed).
//
// # Order
//
// A physical partition (Range) counts its own transactions: the log sequence
// number (LSN) rises by one with each commit, all writes of a batch share it, and
// other partitions do not move it. So the difference of two LSNs of one partition
// is a number of transactions, on which estimates of lag stand.
//
// A split or merge goes on where the parents stood: a child starts at its parent's
// last LSN, a merged range at the higher of both. It writes no documents: a range
// owns a segment of the history, and a new one goes on reading those of its
// ancestors through the window of its own bounds, in the order of LSNs. Therefore
//
//   - a position taken from a parent is valid on each child: it means what the
//     parent had up to there;
//   - a position n taken from one parent and used on the merged range reads what
//     either parent had behind n: never less than what was open of its own, and
//     of the other whatever lay behind n. Who goes on at the lower position of
//     both misses nothing and reads some twice;
//   - LSNs of one logical partition always rise, over any number of splits and
//     merges.
//
// Writers wait while the ranges change, and what they have applied is visible
// before: no position can pass a change that is still to appear.
//
// # Visibility and durability
//
// Writers of one container take turns (Container.writing); readers never wait
// for them. In memory, a commit is visible at once. On disk, readers see the
// last state that has been fsynced, never one that a crash could take back:
// commits queue up for the next fsync, which publishes a snapshot and then
// acknowledges them all (durability.go).
//
// # Goroutines
//
// Open starts one, the sweeper, which frees the space of expired documents
// (their disappearance does not wait for it); Close stops it and waits.
package store
