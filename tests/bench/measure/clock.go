package measure

import (
	"runtime/metrics"
	"syscall"
	"time"
)

// CPU is the processor time that this process has used, in user and in system
// mode. 0 where the system does not tell.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakRSS is the largest resident memory that this process has had, in bytes.
// 0 where the system does not tell.
func PeakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024 // Linux counts kilobytes
}

// Heap is what the objects of this process occupy now, in bytes, those not yet
// collected included.
func Heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) //nolint:gosec // below 2^63
}
