// Package crash breaks the whole system the way operating systems and networks do:
// real processes, real sockets, real disks. Every test ends with the one verifier
// of the outbox's promises, package verify.
//
//	go test -tags faults ./tests/crash                                # one of each
//	FEEDBOX_FAULT_SCALE=0.05 go test -tags faults ./tests/crash       # as CI runs it
//	FEEDBOX_FAULT_SCALE=1 go test -tags faults -timeout 3h ./tests/crash
//
// FEEDBOX_SEED repeats a test's random choices, which a real clock and a real
// scheduler answer anew each time. FEEDBOX_RESULTS names the folder for the records
// that become the table of RELIABILITY.md (go run ./tests/reliability).
//
// The tests need Linux: they read /proc. The one that mounts a tmpfs needs root and is
// skipped loudly without. Bad networks are made by a TCP proxy (testkit.Proxy), not by
// the kernel: what is lost there is what TCP shows of a loss, the wait for a
// repetition. So no test needs tc and netem, which many kernels are built without.
//
// Most of the time leases expire: -parallel 4 is well spent also on two cores.
//
// A relay's name is its place in the leases, so a replaced relay has a new one. The
// processes are those of cmd/feedbox and cmd/feedbox-dev; tests that strike at named
// places build them with the tag failpoint.
package crash
