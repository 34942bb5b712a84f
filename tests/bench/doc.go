// Command bench measures the whole system, every figure together with its floor.
//
//	go run ./tests/bench [-only api,relay] [-json FILE] [-runs 3] [-quick] [-growth] [-profile DIR]
//	go run ./tests/bench compare OLD.json NEW.json
//
// It prints a table to standard output and its progress to standard error. A missed goal is
// printed but is not an error, because a slow or busy machine misses goals too.
//
//	-only     the stages to measure, separated by commas (default all)
//	-runs     number of runs of each stage; the spread of each figure is printed
//	-json     a file for the results
//	-quick    a few seconds per stage: a check that it works, with rough figures
//	-growth   measure the cost of an operation as the system grows instead
//	-profile  a directory for a processor and a heap profile of each stage
//
// compare lists figures that got worse beyond noise; package result has the rule.
//
// Exit status: 0 measured, 1 a stage failed or found wrong results, 2 usage, 3 compare found
// a regression.
//
// Each run of a stage is a separate process: this program calls itself with "stage" and
// reads events from it, one JSON object per line. So the processor time, the memory and the
// profile belong to one stage, and a failing stage does not stop the others. All stages are
// measured once, then all again, so that a disturbance does not hit all runs of a stage.
//
// Goroutines: one reads the events of the running stage and ends with its process.
package main
