//go:build unix

package playground

import (
	"os/exec"
	"syscall"
)

// apart gives a process a group of its own: Ctrl-C is for this process, which ends its
// relays in order. A relay that stands still when this process is killed is woken by the
// system, and ends.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func freeze(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGSTOP) }

func thaw(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGCONT) }
