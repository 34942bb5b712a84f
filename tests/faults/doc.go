// Package faults tests what the whole system does when its store, its broker or its
// consumers fail in one particular way: one file for each fault of RELIABILITY.md that
// needs no process of its own. (Those that do are in tests/crash.)
//
// Each test runs the system of tests/sim/world in virtual time, strikes it with one kind
// of fault as often as testkit.Count says, ends the fault, and lets package verify judge
// what is left behind. What struck is counted where it strikes; a test in which nothing
// struck fails. Results are recorded for RELIABILITY.md.
//
// FEEDBOX_FAULT_SCALE=1 runs the full counts, FEEDBOX_SEED another seed.
package faults
