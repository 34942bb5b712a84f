package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a relay process, built from this tree.
type process struct {
	command *exec.Cmd
	log     bytes.Buffer // read after the process has ended
	dir     string       // of the binary, removed by stop; "" if it stays
}

// kill ends the process at once.
func (p *process) kill() error {
	err := p.command.Process.Kill()
	if err == nil {
		_ = p.command.Wait() // "signal: killed"
	}
	return err
}

// build builds the service in a new folder.
func build(ctx context.Context) (dir, binary string, err error) {
	dir, err = os.MkdirTemp("", "feedbox-bench-bin-")
	if err != nil {
		return "", "", err
	}
	binary = filepath.Join(dir, "feedbox")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "feedbox/cmd/feedbox").CombinedOutput(); err != nil {
		return "", "", errors.Join(fmt.Errorf("build the service: %w: %s", err, text), os.RemoveAll(dir))
	}
	return dir, binary, nil
}

// startProcess builds the service and starts its relay.
func startProcess(ctx context.Context, environment []string) (*process, error) {
	dir, binary, err := build(ctx)
	if err != nil {
		return nil, err
	}
	p, err := startBinary(ctx, binary, environment)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.dir = dir
	return p, nil
}

// startBinary starts the relay of a binary that stays.
func startBinary(ctx context.Context, binary string, environment []string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, binary, "relay")}
	p.command.Env = append(os.Environ(), environment...)
	p.command.Stderr, p.command.Stdout = &p.log, &p.log
	return p, p.command.Start()
}

// stop stops the process as an operator would.
func (p *process) stop() error {
	err := p.command.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = p.command.Wait()
	}
	if err != nil {
		err = fmt.Errorf("the relay process: %w; its log:\n%s", err, p.log.String())
	}
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

// memory returns the current and the peak resident memory in bytes.
func (p *process) memory() (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("resident memory is told by Linux only: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = kilobytes << 10
		case "VmHWM:":
			peak = kilobytes << 10
		}
	}
	return now, peak, nil
}

// cpu returns the processor time that the process has used, in steps of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("processor time of another process is told by Linux only: %w", err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // after the name, which may contain spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc tells %q", stat)
	}
	const tick = 10 * time.Millisecond // USER_HZ
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, nil
}
