// Package patch applies partial updates to a JSON document: the operations add,
// set, replace, remove, incr and move of the service's PATCH.
//
// Only what an operation touches is taken apart; every other byte stays as it was,
// so member order and number spelling survive.
//
// The package is pure: no I/O, no goroutines, no shared state.
package patch
