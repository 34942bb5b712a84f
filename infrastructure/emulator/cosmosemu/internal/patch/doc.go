// Package patch applies partial updates to a JSON document: the operations add,
// set, replace, remove, incr and move of the service's PATCH.
//
// It parses only the values that an operation changes. Every other byte stays unchanged, so
// member order and number spelling are kept.
//
// The package is pure: no I/O, no goroutines, no shared state.
package patch
