// Package playground tests the promises of the outbox live: it puts load on the contacts API,
// runs relays as real processes, injects faults into them and the emulators on demand, and
// continuously verifies the messages that a consumer of the topic receives.
//
// [Start] starts it, Begin injects a fault, State returns its state, Finish ends the load and
// waits for the verdict, and Close stops everything.
//
// The page of `feedbox-dev --play`, its --script and tests use the same engine and the
// same table of faults.
//
// # The verdict
//
// Load comes in rounds: each creates its own contacts and changes them for some seconds.
// While a round is open, order and duplicates of its messages are checked once a second.
// When its load has ended and all of its events have arrived, or patience is over, the judge
// reads the store, package verify checks the round as a whole, and its data is dropped. So
// the rules are those of all other tests, and memory is bounded.
//
//	load ──▶ open ──load over──▶ waiting ──all arrived, or patience over──▶ judged
//	           ▲                    │  ▲
//	messages ──┴────────────────────┘  └── parked events of a contact: until it is healed
//
// # Faults
//
// A fault is injected, lasts and is undone; see [Fault]. At most one fault of a kind is in
// effect, and each ends automatically after a bound. Clocks are not moved while a relay is
// frozen or cut off: its pending messages would be sent after the broker's duplicate window
// and arrive twice, a limit that RELIABILITY.md documents.
//
// # Goroutines
//
// Start starts one for the load, one that ticks, one for each relay process, and those of the
// recorder; Close waits for all of them.
package playground
