package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// Ports returns free ports of the loopback address. They are below 32768, where the system's
// range for outgoing connections begins; otherwise a killed server could find its port in use
// after its restart.
func Ports(t TB, n int) []int {
	t.Helper()
	const first, end = 15000, 32000
	var ports []int
	for try := 0; len(ports) < n; try++ {
		port := first + rand.IntN(end-first)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer func() { _ = l.Close() }() // until there are enough
			ports = append(ports, port)
		} else if try > 100 {
			t.Fatal("no free port: ", err)
		}
	}
	return ports
}

// Address returns a free address of the loopback interface; see Ports. A listener on port 0 that is closed
// again does not reserve its port: an outgoing connection of any process can get it before it is used.
func Address(t TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Ports(t, 1)[0])
}

// endsWithTest makes a process the leader of a group, which a signal of the terminal does not reach,
// and has the kernel kill it when the test process ends. A test process that is killed, or that
// exceeds its timeout, runs no clean-up and would otherwise leave its servers running.
func endsWithTest() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
