// Package parked keeps parked events in stores of rows: a gate for each parked key, and
// events behind it. A store brings a Store, which knows nothing of what a gate is for.
//
// Nothing is locked. What is to be changed is decided on what was read, and made in one
// commit if the gate is as it was read. Each change gives the gate a version that it never
// had:
//
//	       ┌──────────── somebody was faster: wait, again ──────────────┐
//	       ▼                                                            │
//	read the gate, and events behind it ──▶ decide ──▶ commit, if the version is as read
//	                                                                    │
//	                                                                    └──▶ done
//
// Park and SetIntent try until it is done; whoever brings a gate that he has read himself is
// told that it was changed. Events are read after the gate or with it, so what is decided on
// events that are gone finds another version.
//
// One commit puts or takes away a limited number of events; more take several, in their order.
//
// Nothing here starts a goroutine.
package parked
