package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
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
