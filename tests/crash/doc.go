// Package crash breaks the whole system the way operating systems and networks do:
// real processes, real sockets, real disks. Every test ends with the one verifier
// of the outbox's promises, package verify.
//
//	go test -tags faults ./tests/crash                                # one of each
//	FEEDBOX_FAULT_SCALE=0.05 go test -tags faults ./tests/crash       # as CI runs it
//	FEEDBOX_FAULT_SCALE=1 go test -tags faults -timeout 3h ./tests/crash
//
// FEEDBOX_SEED repeats a test's random choices; the real clock and scheduler still make
// each run different. FEEDBOX_RESULTS names the folder for the records
// that become the table of tests/faults/README.md (go run ./tests/reliability).
//
// The tests need Linux: they read /proc. The one that mounts a tmpfs needs root and is
// skipped loudly without. Bad networks are made by a TCP proxy (testkit.Proxy), not by
// the kernel: a loss is simulated as TCP shows it, by the wait for the
// repetition. So no test needs tc and netem, which many kernels do not have.
//
// Most of the time the tests wait for leases to expire: use -parallel 4 even on two cores.
//
// A relay's name is its place in the leases, so a replaced relay has a new one. The
// processes are those of cmd/feedbox and cmd/feedbox-dev; tests that strike at named
// places build them with the tag failpoint.
package crash
