package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"feedbox/tests/testkit"
)

// Output on a terminal is coloured unless NO_COLOR is set or the terminal is dumb.
func TestTerminalOutputIsColoured(t *testing.T) {
	for variable, coloured := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		t.Run(variable, func(t *testing.T) {
			shown := onTerminal(t, []string{"TERM=xterm", variable}, testkit.Build(t).Dev, testkit.AnyPorts("--ephemeral", "--log-level", "info")...)
			if strings.Contains(shown, "\x1b[") != coloured {
				t.Errorf("coloured: want %v:\n%q", coloured, shown)
			}
		})
	}
}

// onTerminal runs a program in a terminal until its banner is complete, and returns its output.
func onTerminal(t *testing.T, env []string, path string, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = master.Close() }()
	var number, unlock uint32
	for request, value := range map[uintptr]*uint32{0x40045431: &unlock, 0x80045430: &number} { // TIOCSPTLCK, TIOCGPTN
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(value))); code != 0 {
			t.Fatal(code)
		}
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready.json")
	cmd := exec.Command(path, append(args, "--ready-file", ready)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	out := &output{}
	var reading sync.WaitGroup
	reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			_, _ = out.Write(buffer[:n])
			if err != nil {
				return // the program has ended
			}
		}
	})
	testkit.Eventually(t, time.Minute, "the banner", func() bool { return strings.Contains(out.String(), "Point feedbox and curl") })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		defer func() { t.Errorf("SIGTERM: %v\n%s", err, out) }()
	}
	reading.Wait()
	return out.String()
}
