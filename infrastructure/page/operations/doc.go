// Package operations is what those who run relays see and do on the page: now, ranges,
// parked keys, the life of an aggregate, members, and the doctor.
//
// Everything shown comes through a Port, over the operator's use cases, and from the metrics
// of the relays. One Reader per process reads for all tabs:
//
//	             nobody looks        somebody looks (a view was asked for in the last 10 s)
//	metrics      each 15 s           each 2 s
//	leases, lag  -                   each 2 s, but no more than a fifth of the time
//	parked keys  -                   each 3 s, but no more than a fifth of the time
//
// So tabs cost the store and the relays nothing, however many are open; only the page of one
// key reads that key, once a second for all tabs that show it. Lag is taken from the metrics
// where relays tell it, and measured by reads of the feed where they do not.
//
// The Reader remembers 15 minutes of numbers and the latest changes of ownership, in memory
// of a fixed size, and parked keys with their errors cut short.
//
// Acts write what the commands of feedbox write: a note on a gate or a lease with who and
// why, which a relay takes up, besides the record in the log that package page keeps.
package operations
