// Package processor measures the change feed processor.
//
// In virtual time: balancing, takeover, idle requests and lanes, each compared with .NET's
// processor at its defaults or with one lane. .NET's figures are calculated from its code,
// not measured. Virtual time needs a testing/synctest bubble, which only tests have. So these
// figures come from the tests of this package: Measure runs them with go test, and they write
// their figures to the file in FEEDBOX_BENCH_FIGURES. Without it they only run briefly, to
// check that they work.
//
// In real time: the processor time per document, compared with a loop that only reads the
// feed, and its growth with ranges and hosts.
package processor
