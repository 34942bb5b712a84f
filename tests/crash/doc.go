// Package crash tests the whole system under faults of the operating system and the network, with real
// processes, sockets and disks. Every test ends with the verifier of the outbox's invariants, package
// verify.
//
//	go test -tags faults ./tests/crash                                # one of each
//	FEEDBOX_FAULT_SCALE=0.05 go test -tags faults ./tests/crash       # as CI runs it
//	FEEDBOX_FAULT_SCALE=1 go test -tags faults -timeout 3h ./tests/crash
//
// FEEDBOX_SEED repeats a test's random choices; the real clock and scheduler still make each run
// different. FEEDBOX_RESULTS is the folder for the records, from which the table of
// tests/faults/README.md is generated (go run ./tests/reliability).
//
// FEEDBOX_STEPS is a folder for recordings of the relays' requests to their leases, which command spec
// compares with the specification (tests/spec/README.md).
//
// The tests need Linux, because they read /proc. The one that mounts a tmpfs needs root and is skipped
// with a message otherwise. Network faults are simulated by a TCP proxy (testkit.Proxy) and not by tc
// and netem, because many kernels do not have them. A lost segment is simulated as a delay until its
// retransmission.
//
// The tests mostly wait for leases to expire: use -parallel 4 even on two cores.
//
// A relay is identified in the leases by its name, so a replaced relay gets a new name. The processes
// are those of cmd/feedbox and cmd/feedbox-dev. Tests that kill a relay at a named place build them
// with the tag failpoint.
package crash
