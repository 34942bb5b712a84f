// Command bench measures the whole system: every figure beside its floor, in one run.
//
//	go run ./tests/bench [-only api,relay] [-json FILE] [-runs 3] [-quick] [-growth] [-profile DIR]
//	go run ./tests/bench compare OLD.json NEW.json
//
// It prints a table on its output, its progress on the error output. A missed goal is
// printed and is no error: a slow or busy machine misses goals, too.
//
//	-only     the stages to measure, separated by commas (default all)
//	-runs     how often each stage is measured; the spread of each figure is printed
//	-json     a file for the results
//	-quick    a few seconds a stage: shows that it works, the figures are rough
//	-growth   measure the cost of an operation as the system grows instead
//	-profile  a directory for a processor and a heap profile of each stage
//
// compare flags what got worse beyond noise; package result has the rule.
//
// Exit status: 0 measured, 1 a stage could not be measured or measured something
// wrong, 2 usage, 3 compare found a regression.
//
// Each run of a stage is a process of its own: this program calls itself with "stage"
// and reads events from it, one JSON object a line. So the processor time, the memory
// and the profile of a stage are its own, and a stage that fails does not end the others.
// The runs of a stage are not made in a row: all stages are measured, then all again.
//
// Goroutines: one reads the events of the running stage, and ends with its process.
package main
