// Package unitofwork implements units of work (package application/command) for all stores:
// options, aggregates that were added or read, publication of their events, and the attempts
// of a commit.
//
//	command ──▶ unit of work ──▶ Transaction, of one store
//	             Add, Read         Read, Earlier
//	             Commit ─────────▶ Save ──▶ Options.Attempt: one attempt, another, ...
//
// A store implements Transaction and passes a function that begins one to New. Its Save
// sends the change through Options.Attempt, so that every store resolves an unknown outcome
// in the same way.
//
// The package starts no goroutines. UnitsOfWork is safe for concurrent use; a unit of work
// and its Transaction serve one goroutine.
package unitofwork
