// Package sim runs the whole system (package world) under random faults in virtual
// time and asks the shared verifier whether it kept its promises: I1 to I8 and I10 by
// package verify; I9 by the bubble, which fails on a goroutine that is left over, and by
// comparing the heap after the first and the last seeds.
//
// A seed fixes the topology, the workload and the schedule of faults (see NewPlan),
// not how goroutines interleave. A seed that fails is therefore run again, and how often
// it fails is said; its history is written to a file; and its schedule is shrunk to the
// faults without which it does not fail.
//
//	go test ./tests/sim                                  a few seeds
//	SIM_SEED=17 SIM_SEEDS=1 go test -v ./tests/sim        one of them
//	FEEDBOX_FAULT_SCALE=1 go test ./tests/sim             1,000 seeds of 10 minutes
//
// Environment:
//
//	SIM_SEED     the first seed, default 1
//	SIM_SEEDS    how many; default 1,000 times FEEDBOX_FAULT_SCALE, without it 6
//	SIM_MINUTES  simulated time with faults of each; default 10, without
//	             FEEDBOX_FAULT_SCALE 3
//	SIM_RERUNS   how often a failing seed is run again, default 5
//	SIM_SHRINK   real time for shrinking its schedule, default 2m; 0 does not
//	SIM_ONLY     run only faults of these kinds, separated by commas
//	FEEDBOX_RESULTS  a directory for histories of failing seeds and the record
package sim
