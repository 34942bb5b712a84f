package measure

import (
	"runtime/metrics"
	"syscall"
	"time"
)

// CPU returns the processor time of this process, in user and system mode, or 0 if the
// system does not report it.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakRSS returns the largest resident memory of this process in bytes, or 0 if the system
// does not report it.
func PeakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024 // Linux counts kilobytes
}

// Heap returns the current size of all objects of this process in bytes, including those
// not yet collected.
func Heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) //nolint:gosec // below 2^63
}
