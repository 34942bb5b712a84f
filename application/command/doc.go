// Package command holds the use cases that change a contact, one per file: the
// input, its answer, and the handler. Register makes a mediator answer them.
//
// A command that updates may carry preconditions (IfMatch). With one, the contact
// must still be in a state the client has seen, else fault.PreconditionFailed.
// Without one, a command that loses a race to another writer is run again from the
// read, a bounded number of times with random waits (contention.go); after that it ends
// in fault.Unavailable, never in PreconditionFailed.
//
// A command may come under an idempotency key. A create then derives the contact's
// id from it; an update leaves a note beside the contact, in the same transaction,
// so its key is remembered per contact. A repeated command changes nothing, and its
// answer says that it was a repetition.
//
// Validation happens in the domain's value objects; handlers merge their faults,
// so that a client learns of all of them at once.
package command
