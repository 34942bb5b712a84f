package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// StartSQS starts moto, an emulator of Amazon SQS, until the test ends, and returns its address.
// It is the Python package moto[server], installed by install.sh or on the PATH.
func StartSQS(t TB) (endpoint string) {
	t.Helper()
	program := filepath.Join(moduleRoot(t), ".cache/moto/bin/moto_server")
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("moto_server"); err != nil {
			t.Skip("moto is not installed (tests/servers/install.sh)")
		}
	}
	port := Ports(t, 1)[0]
	cmd := exec.Command(program, "-H", "127.0.0.1", "-p", fmt.Sprint(port))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(moduleRoot(t), "tests/servers/moto")) // it patches moto's queues
	cmd.SysProcAttr = endsWithTest()
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

// moduleRoot returns the folder of go.mod.
func moduleRoot(t TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	t.Fatal("no go.mod above the working directory", err)
	return ""
}
