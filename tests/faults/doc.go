// Package faults tests what the whole system does when its store, its broker or its
// consumers fail in one particular way: one file for each fault of README.md that
// needs no process of its own. (Those that do are in tests/crash.)
//
// Each test runs the system of tests/sim/world in virtual time, injects one kind of fault
// as often as testkit.Count says, ends the fault, and lets package verify check the
// result. Injected faults are counted where they happen; a test in which none happened
// fails. The results are recorded for the table of README.md.
//
// FEEDBOX_FAULT_SCALE=1 runs the full counts, FEEDBOX_SEED another seed.
package faults
