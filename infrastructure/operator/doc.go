// Package operator holds the use cases of the people who operate relays: inspect leases and
// lag, pause and rewind them, inspect parked keys and compare them with the store, send events
// again, and examine the environment (Diagnose).
//
// An Operator takes the relay's own ports (package relayport) and a doctor for each, and
// connects nothing until a use case needs it. Requests to relays are recorded in the store,
// because only the owner of a range may send its new and parked events; the Operator itself
// sends replays of a key and replaces stored events. Checks that are specific to one store or
// broker are in the package doctor below that store or broker. Package plan sizes a deployment.
package operator
