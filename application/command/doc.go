// Package command is how a command changes one aggregate, whatever its kind: read or make
// it, call its verbs, commit, and answer a repeat as such. A use case gives the verbs.
//
// A command that updates may carry preconditions (IfMatch). With one, the aggregate
// must still be in a state the client has seen, else fault.PreconditionFailed.
// Without one, a command that loses a race to another writer is run again from the
// read, a bounded number of times with random waits (contention.go); after that it ends
// in fault.Unavailable, never in PreconditionFailed.
//
// A command may come under an idempotency key. A create then derives the aggregate's
// id from it; an update leaves a note beside the aggregate, in the same transaction,
// so its key is remembered per aggregate. A repeated command changes nothing, and its
// answer says that it was a repetition.
package command
