// Package console writes the output of commands: aligned tables or JSON on standard
// output, prompts and progress bars on a terminal only.
//
// Invariants:
//   - Results for scripts go to one writer, messages for people to another; with
//     JSON the first gets JSON only.
//   - Without a terminal there is no prompt: Confirm returns ErrNotAsked, because a
//     script would wait for ever.
//   - Text from outside cannot move the cursor: Clean, Plain, tables and JSON contain no control
//     characters.
//
// It does not depend on the service and starts no goroutines.
package console
