// Package simulation runs many hosts of one processor against a container, in virtual time
// and under faults of every kind, and checks the guarantees of package changefeed.
//
// A run belongs in a testing/synctest bubble. Its faults follow from a seed: hosts join,
// leave, crash, are stopped and wake, are suspended with their clock; clocks drift and
// jump; the lease store throttles, fails, loses replies and serves old versions; the feed
// throttles, fails and falls silent; an operator pauses, resumes, releases, retries, rewinds and
// restarts leases; handlers fail and refuse documents, the sink of dead letters fails,
// one key waits for the whole time; ranges split and merge. Documents are written
// meanwhile.
//
// With Config.Foreign a processor of another product works on the same leases by its own
// rules: see foreign.go.
//
// One verifier checks every delivery and every write of a lease:
//
//	V1  every change is delivered, unless a later version replaced it
//	V2  the first deliveries of a key are in the order of its changes
//	V3  once a lease has a new owner, its former owner begins no delivery. Exceptions:
//	    another product took the lease; the host was stopped between its last check of
//	    the clocks and its send; or it was suspended while its wall clock was set back.
//	    Such a host is a zombie: its deliveries are counted, and ignored by V1, V2, V4
//	V4  no stored position is after a change that was not delivered, and neither is what a
//	    lease records as done ahead of its position, except the changes of held keys
//	V5  once faults end, every lease is owned by a live host within Expiry and
//	    one cycle, and the leases are shared out evenly
//	V6  a refused document is dead-lettered after its refusals, not before
//
// Goroutines: one per host's Run, one writer, those of the other product's. All have ended
// when Run returns.
package simulation
