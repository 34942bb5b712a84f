// Package operator holds the use cases of the people who operate relays: inspect leases and
// lag, pause and rewind them, inspect parked keys and compare them with the store, send events
// again, and examine the environment (Diagnose).
//
// An Operator takes the relay's own ports (package relayport) and a doctor for each, and
// connects nothing until a use case needs it. It only records intents in the store; a relay
// carries them out, because only the owner of a range may send its events. Checks that are
// specific to one store or broker are in the package doctor below that store or broker.
package operator
