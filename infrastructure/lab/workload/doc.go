// Package workload is a load generator: concurrent clients change contacts through the HTTP
// API of this service and record the outcomes. Package verify uses these outcomes to check
// the promises of the outbox. Fault tests and `feedbox-dev load` use the package.
//
// Invariants:
//
//   - A contact belongs to one writer, which sends one request at a time, except for the
//     hot contact of Load.Hot. So the version of a contact is its number of acknowledged
//     changes.
//   - A change is acknowledged after its whole reply was read. Its outcome is unknown if
//     there was no reply, or a 5xx. All other requests changed nothing.
//
// Goroutines: Run starts one for each writer and waits for all of them.
package workload
