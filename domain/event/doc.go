// Package event holds the common fields of domain events, and the recorder that keeps the
// events of an aggregate until they are committed.
//
// An event is a value. It has no version and no sequence when it is recorded. The commit
// assigns both, so that a failed commit leaves no gap.
package event
