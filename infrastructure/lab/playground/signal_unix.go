//go:build unix

package playground

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a process its own process group, so that Ctrl-C reaches only this process, which
// then ends its relays in order. If this process is killed, the system continues a frozen
// relay, which ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func freeze(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGSTOP) }

func thaw(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGCONT) }
