package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// child is a server in a process of its own. It is asked for its CPU time over its
// standard input and ends when that is closed.
type child struct {
	name     string
	endpoint string
	key      string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
}

func startChild(ctx context.Context, name string, secure bool, dir, profile string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve", name, fmt.Sprintf("-http=%v", !secure), "-data-dir", dir, "-cpuprofile", profile)
	cmd.Stderr = os.Stderr
	c := &child{name: name, cmd: cmd}
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.endpoint, c.key, _ = strings.Cut(strings.TrimSpace(line), " ")
	return c, nil
}

// cpu is the CPU time the server has used so far.
func (c *child) cpu() (time.Duration, error) {
	if _, err := fmt.Fprintln(c.in, "cpu"); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(strings.TrimSpace(line))
}

func (c *child) stop() {
	_ = c.in.Close() // the child sees the end of its input
	_ = c.cmd.Wait() // its outcome does not matter any more
}
