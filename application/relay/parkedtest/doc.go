// Package parkedtest tests stores of parked events, which implement relay.ParkedStore and
// relay.DrainStore. Run is the suite that each of them passes. Memory is a store in memory for
// other tests.
package parkedtest
