// Package parked keeps parked events in a record store: a gate for each parked key, and the
// events that wait at it. A store implements Records, which knows nothing of the meaning of a
// gate.
//
// There are no locks. Each operation reads the gate, decides, and commits on the condition that
// the gate still has the version that was read. Each change gives the gate a new version:
//
//	       ┌────────────── ErrChanged: wait, again ─────────────────┐
//	       ▼                                                        │
//	read the gate and its events ──▶ decide ──▶ commit on the version that was read ──▶ done
//
// Park and SetIntent repeat until they succeed. A caller that passes a gate it has read gets
// PreconditionFailed if the gate has changed since. Events are read together with the gate or
// after it. So if one of them was removed in the meantime, the gate has another version and the
// commit fails.
//
// One commit adds or removes a limited number of events; more events take several commits, in
// their order.
//
// The package starts no goroutines.
package parked
