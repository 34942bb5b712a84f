package testkit

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// PeakMemory returns the maximum resident memory of the process in bytes; 0 without /proc.
func (p *Process) PeakMemory(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	if !found {
		return 0
	}
	fields := bytes.Fields(rest)
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		t.Fatalf("peak memory of %s: %v", p.Name, err)
	}
	return kib << 10
}

// Signalled waits for the end of the process and returns the signal that ended it, or 0.
func (p *Process) Signalled() syscall.Signal {
	<-p.done
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0
	}
	return status.Signal()
}

// ProcessorTime returns the total and the idle time of all processors in ticks since boot; 0 without
// /proc.
func ProcessorTime() (all, idle int64) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	for i, field := range bytes.Fields(line) { // cpu user nice system idle iowait irq softirq steal guest guest_nice
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil || i > 8 { // guests count as user
			continue
		}
		all += ticks
		if i == 4 || i == 5 {
			idle += ticks
		}
	}
	return all, idle
}
