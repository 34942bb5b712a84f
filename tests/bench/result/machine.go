package result

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine of a measurement. Values that the system does not report are
// empty.
type Machine struct {
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"` // that Go uses
	MemoryMB int64   `json:"memoryMB"`
	System   string  `json:"system"`
	Go       string  `json:"go"`
	Commit   string  `json:"commit"`
	Changed  bool    `json:"changed,omitempty"` // the tree differs from the commit
	Load     float64 `json:"load"`              // average of the last minute, at the start
}

// ThisMachine describes the machine, and the commit of the current directory.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	m.CPU = lineOf("/proc/cpuinfo", "model name")
	if kilobytes, err := strconv.ParseInt(strings.TrimSuffix(lineOf("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.MemoryMB = kilobytes >> 10
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.Load, _ = strconv.ParseFloat(first, 64) // 0 if not reported
	}
	m.Commit = git("rev-parse", "--short=12", "HEAD")
	m.Changed = git("status", "--porcelain", "--untracked-files=no") != ""
	return m
}

// Same reports whether figures without a floor can be compared.
func (m Machine) Same(other Machine) bool {
	return m.CPU == other.CPU && m.Cores == other.Cores && m.System == other.System
}

// String returns a description in one line.
func (m Machine) String() string {
	commit := m.Commit
	if m.Changed {
		commit += " with changes"
	}
	return fmt.Sprintf("%s, %d cores, %d MB, %s, %s, commit %s, load %.2f at the start", m.CPU, m.Cores, m.MemoryMB, m.System, m.Go, commit, m.Load)
}

// lineOf returns the text after "name:" in a file of the kernel.
func lineOf(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func git(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "" // not a checkout
	}
	return strings.TrimSpace(string(out))
}
