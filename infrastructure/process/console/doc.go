// Package console is how commands talk to people and scripts: aligned tables or
// JSON on standard output, questions and progress on a terminal only.
//
// Invariants:
//   - Results for scripts go to one writer, messages for people to another; with
//     JSON the first gets JSON only.
//   - Without a terminal nothing is asked: Confirm refuses instead.
//   - Text from outside cannot move the cursor: tables hold no control characters.
//
// It knows nothing of the service and starts no goroutines.
package console
