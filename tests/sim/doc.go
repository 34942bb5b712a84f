// Package sim runs the whole system (package world) under random faults in virtual
// time and checks the invariants. Package verify checks I1 to I8 and I10. The bubble checks I9,
// because it fails if a goroutine is left over; the heap is compared after the first and the
// last seeds, too.
//
// Faults are of four sources, each with its own random source: loud ones, which end in an error
// (kinds.go), crashes of shops, quiet ones (acts.go): a link or a read that never answers, and
// operators who pause, release, rewind and retry at any time, and those of consumers (acts.go).
//
// In every second seed the consumers park (Topology.Parking): inbox and parked events are in the store,
// and for some events the handlers refuse, fail, panic or wait for longer than a session is locked.
// Their dependency is unavailable at times, consumers crash, freeze for longer than their locks or with a
// request to park on its way, and operators retry and skip parked keys. In the end every event must have its effect once and in
// order, or was skipped, or is parked after an event that a handler refused. Then the handlers accept
// everything, an operator retries all keys, and nothing may stay parked.
//
// A seed fixes the topology, the workload and the schedule of faults (see NewPlan),
// not how goroutines interleave. A failing seed is therefore run several times and its failure
// rate is reported, its history is written to a file, and its schedule is shrunk to the faults
// that are needed for the failure.
//
//	go test ./tests/sim                                  a few seeds
//	SIM_SEED=17 SIM_SEEDS=1 go test -v ./tests/sim        one of them
//	FEEDBOX_FAULT_SCALE=1 go test ./tests/sim             1,000 seeds of 10 minutes
//
// Environment:
//
//	SIM_SEED     the first seed, default 1
//	SIM_SEEDS    number of seeds, default 1,000 times FEEDBOX_FAULT_SCALE, without it 6
//	SIM_MINUTES  simulated minutes with faults per seed, default 10, without
//	             FEEDBOX_FAULT_SCALE 3
//	SIM_RERUNS   number of reruns of a failing seed, default 5
//	SIM_SHRINK   real time for shrinking its schedule, default 2m; 0 disables it
//	SIM_ONLY     run only faults of these kinds, separated by commas
//	FEEDBOX_RESULTS  a directory for histories of failing seeds and the record
package sim
