// Package playground tries to break the promise, live: it puts load on the contacts API,
// runs relays as real processes, does them and the emulators harm on demand, and judges
// all the while what a consumer of the topic receives.
//
// [Start] begins, Begin does a fault, State tells all there is to see, Finish ends the load
// and waits for the verdict, and Close ends everything.
//
// The page of `feedbox-dev --play`, its --script and tests use the same engine and the
// same table of faults.
//
// # The verdict
//
// Load comes in rounds: each makes contacts of its own and changes them for some seconds.
// While a round is open, order and repetition of its messages are judged once a second.
// When its load has ended and all of its events have arrived, or patience has, the store
// is read, package verify judges the round as a whole, and all that was kept of it is
// forgotten. So the rules are those of every other test, and memory does not grow with
// time.
//
//	load ──▶ open ──load over──▶ waiting ──all arrived, or patience over──▶ judged
//	           ▲                    │  ▲
//	messages ──┴────────────────────┘  └── parked events of a contact: until it is healed
//
// # Faults
//
// A fault begins, lasts and is undone; see [Fault]. One of a kind is on at a time, and each
// has a bound after which it ends by itself. Clocks are not moved while a relay stands still
// or is cut off: what a relay sends after the broker's duplicate window is over arrives
// twice, which RELIABILITY.md names as a limit.
//
// # Goroutines
//
// Start starts one that makes load, one that ticks, one for each relay process, and those of
// the witness; Close ends and awaits all.
package playground
