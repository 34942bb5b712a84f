// Package cli runs the operator commands of the real binary in scripts against emulators in the test
// process.
package cli
