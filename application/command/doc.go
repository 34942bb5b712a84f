// Package command changes one aggregate per command, whatever its kind: it reads or creates
// the aggregate, calls its verbs, commits, and recognises repeated requests. A use case
// provides the verbs.
//
// A command that updates may carry preconditions (IfMatch). The aggregate must then still be
// in a state that the client has seen, otherwise the command returns
// fault.PreconditionFailed. A command without one that loses a race against another writer
// starts again from the read, a bounded number of times with random waits (contention.go).
// After that it returns fault.Unavailable, never PreconditionFailed.
//
// A command may carry an idempotency key. A create derives the id of the aggregate from it.
// An update stores a note next to the aggregate in the same transaction, so that keys are
// remembered per aggregate. A repeated command changes nothing, and its answer has Replayed
// set.
package command
