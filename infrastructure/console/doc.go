// Package console is how commands talk to people and scripts: aligned tables or
// JSON on standard output, questions and progress on a terminal only.
//
// Invariants:
//   - What a script reads goes to one writer, what a person reads meanwhile to
//     another; with JSON the first carries nothing but JSON.
//   - Nothing is asked where nobody can answer: Confirm refuses instead.
//   - Text from outside cannot move the cursor: tables hold no control characters.
//
// It knows nothing of the service and starts no goroutines.
package console
