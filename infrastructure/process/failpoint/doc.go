// Package failpoint lets the fault tests kill or stop a process at a named place in its
// code. It does so only in binaries built with the tag failpoint; in all others Here is
// empty and the compiler removes it.
//
// The variable FAILPOINT arms one place of the process:
//
//	FAILPOINT=sent      the first time the place is reached, the process kills itself
//	FAILPOINT=sent:7    the seventh time
//	FAILPOINT=send:7:stop
//	                    the seventh time it stops itself (SIGSTOP), until SIGCONT
//
// The places are:
//
//	send           the fence has been checked, the batch is about to be sent
//	sent           the broker has accepted a batch; others of its page may be unsent
//	page-sent      all of a page has been accepted, no checkpoint after it is stored
//	parked         an event was parked, no checkpoint after it is stored
//	lease-creating a record of the lease store is about to be created
//	lease-created  a record of the lease store was created
//	lease-renewed  a lease was stored: a renewal, a checkpoint or a change of owner
//
// tests/testkit.Build makes a tagged binary.
package failpoint
