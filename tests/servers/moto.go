package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// StartSQS starts moto, a server that behaves like Amazon SQS, and returns its address. It ends
// with the test. FEEDBOX_TEST_MOTO names its program, moto_server of the Python package
// moto[server]; without it the one on the PATH is used.
func StartSQS(t testing.TB) (endpoint string) {
	t.Helper()
	program := os.Getenv("FEEDBOX_TEST_MOTO")
	if program == "" {
		var err error
		if program, err = exec.LookPath("moto_server"); err != nil {
			t.Skip("moto_server is not installed (pip install 'moto[server]'; FEEDBOX_TEST_MOTO may name it)")
		}
	}
	port := freePorts(t, 1)[0]
	cmd := exec.Command(program, "-H", "127.0.0.1", "-p", fmt.Sprint(port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ended
		_ = cmd.Wait()         // killed
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatal("moto_server took no connection within a minute")
		}
	}
}
