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
// A container has one log sequence number (LSN), raised by one per committed
// transaction; all writes of a batch share it. A physical partition (Range) owns
// a segment of the feed index. A split or merge writes no documents: the new
// ranges get new segments and go on reading those of their ancestors, through
// the window of their own bounds. Since LSNs are the container's, a position
// taken from a parent is valid on its children.
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
