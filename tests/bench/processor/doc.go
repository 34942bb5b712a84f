// Package processor measures the change feed processor.
//
// In virtual time: balancing, takeover, idle requests and lanes, each beside .NET's
// processor at its defaults or beside one lane. .NET's figures are computed from its
// code, not measured. Virtual time needs a testing/synctest bubble, which only a test
// has, so these are the tests of this package: Measure runs them with go test, and they
// leave their figures in the file that FEEDBOX_BENCH_FIGURES names. Without it they run
// once and shortly, to show that they work.
//
// In real time: the processor time of a document beside a loop that only reads the
// feed, and how it grows with ranges and hosts.
package processor
