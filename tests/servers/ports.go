package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports returns ports of the loopback address that nobody listens at. The system gives them to no
// connection that goes out (its range begins at 32768), so that a server that was killed finds
// its port free.
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
