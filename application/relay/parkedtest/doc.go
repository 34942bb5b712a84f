// Package parkedtest has what proves a store of parked events, an implementation of
// relay.ParkedStore and relay.DrainStore: Run, a suite that each of them passes, and
// Memory, one that lives in memory.
package parkedtest
