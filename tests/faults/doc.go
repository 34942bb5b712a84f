// Package faults tests the whole system under one kind of fault of its store, its broker or its
// consumers per test. Each file is one fault of README.md. Faults that need separate processes
// are in tests/crash.
//
// Each test runs the system of tests/sim/world in virtual time, injects testkit.Count faults,
// ends the fault, and lets package verify check the result. Injected faults are counted where
// they happen, and a test without any fails. The results are recorded for the table of README.md.
//
// FEEDBOX_FAULT_SCALE=1 runs the full counts, FEEDBOX_SEED another seed.
package faults
