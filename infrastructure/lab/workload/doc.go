// Package workload is a load generator: many clients at once change contacts through the
// HTTP API of this service, and a history keeps the answers they got. With that history,
// package verify can decide whether the outbox kept its promises. Fault tests and
// `feedbox-dev load` use it.
//
// Invariants:
//
//   - A contact belongs to one writer, which sends one request at a time, unless
//     Load.Hot says otherwise: the number of acknowledged changes of a contact is its
//     version.
//   - A change counts as acknowledged only once its whole reply has been read, and as
//     unknown when the reply never came or was 5xx. Everything else changed nothing.
//
// Goroutines: Run starts one for each writer and waits for all of them.
package workload
