// Package simulation runs many hosts of one processor against a container while
// everything goes wrong, in virtual time, and checks what package changefeed
// promises.
//
// A run belongs in a testing/synctest bubble. Its faults follow from a seed:
// hosts join, leave, crash, are stopped and wake, are suspended with their clock;
// clocks drift and jump; the lease store throttles, fails, loses answers and
// serves old versions; the feed throttles and fails; handlers fail; ranges split
// and merge; all while documents are written.
//
// With Config.Foreign a processor of another product works on the same leases and
// keeps its own rules, not this package's: see foreign.go.
//
// One verifier watches every delivery and every write of a lease:
//
//	V1  every change is delivered, unless a later version replaced it
//	V2  the first deliveries of a key are in the order of its changes
//	V3  once a lease has a new owner its former one begins nothing, unless it was
//	    stopped between its last look at the clocks and sending, or suspended
//	    while its wall clock was set back (a zombie: counted, and its deliveries
//	    do not count for V1, V2 and V4), and unless another product took the lease
//	V4  no stored position is behind a change that was not delivered
//	V5  once faults end, every lease is owned by a live host within Expiry and
//	    one cycle, and the leases are shared out evenly
//
// Goroutines: one per host's Run, one writer, those of the other product's, all ended when Run returns.
package simulation
