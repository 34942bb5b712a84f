// Package cli runs the operators' commands of the real binary, as scripts, against
// emulators in the test's own process.
package cli
