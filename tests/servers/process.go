package servers

import "syscall"

// endsWithTest makes a process the leader of a group, which a signal of the terminal does not reach,
// and has the kernel kill it when the test process ends. A test process that is killed, or that
// exceeds its timeout, runs no clean-up and would otherwise leave its servers running.
func endsWithTest() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
