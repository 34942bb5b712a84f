package testkit

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stopped tells whether the process stands still, as SIGSTOP leaves it. Only where
// there is /proc.
func (p *Process) Stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return false // it has ended
	}
	// The state follows the name of the program, which is in brackets and may hold any byte.
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(state) > 0 && state[0] == 'T'
}

// PeakMemory is the most memory the process has had in RAM, in bytes; 0 where there
// is no /proc.
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

// Signalled is the signal that ended the process, 0 if none did. The process has
// ended.
func (p *Process) Signalled() syscall.Signal {
	<-p.done
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0
	}
	return status.Signal()
}

// ProcessorTime is how long all processors together have been there and how long they
// had nothing to do, in ticks since the machine began; 0 where there is no /proc.
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
