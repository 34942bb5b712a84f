package servicebus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// idleFigures has the figures of a process with an idle emulator: MB, 1/s and ms/s.
type idleFigures struct {
	heap, resident, anonymous, file float64
	wakeups, cpu                    float64
}

// observeIdle builds and runs the command in ./idle, sends it a message, and measures the
// process from outside while the client stays connected. Linux only.
func observeIdle(ctx context.Context, quick bool) (f idleFigures, err error) {
	dir, err := os.MkdirTemp("", "feedbox-bench-*")
	if err != nil {
		return f, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "idle")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "feedbox/tests/bench/servicebus/idle").CombinedOutput(); err != nil {
		return f, fmt.Errorf("build: %w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	defer func() {
		_ = in.Close() // it ends with its input
		_ = cmd.Wait()
	}()
	var connection string
	if _, err := fmt.Fscan(out, &connection); err != nil {
		return f, err
	}
	client, err := azservicebus.NewClientFromConnectionString(connection, nil)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	sender, err := client.NewSender(queueName, nil)
	if err != nil {
		return f, err
	}
	if err := sender.SendMessage(ctx, &azservicebus.Message{Body: make([]byte, bodySize)}, nil); err != nil {
		return f, err
	}
	var heap int64
	if _, err := fmt.Fprintln(in); err != nil {
		return f, err
	}
	if _, err := fmt.Fscan(out, &heap); err != nil {
		return f, err
	}
	f.heap = megabytes(heap)
	return f, f.watch(ctx, cmd.Process.Pid, quick)
}

// watch reads the kernel's counters of a process twice.
func (f *idleFigures) watch(ctx context.Context, pid int, quick bool) error {
	length := 10 * time.Second
	if quick {
		length = 200 * time.Millisecond
	}
	before, err := processStatus(pid)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
	}
	after, err := processStatus(pid)
	if err != nil {
		return err
	}
	f.resident, f.anonymous, f.file = megabytes(after["VmRSS"]<<10), megabytes(after["RssAnon"]<<10), megabytes(after["RssFile"]<<10)
	f.wakeups = float64(after[switches]-before[switches]) / length.Seconds()
	f.cpu = float64(after[runtimeNanos]-before[runtimeNanos]) / float64(time.Millisecond) / length.Seconds()
	return nil
}

const (
	switches     = "voluntary_ctxt_switches"
	runtimeNanos = "runtime"
)

// processStatus returns /proc/pid/status, with the sums of context switches and processor time
// (schedstat) of all threads.
func processStatus(pid int) (map[string]int64, error) {
	status := make(map[string]int64)
	read := func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			fields := strings.Fields(value)
			if len(fields) == 0 {
				continue
			}
			if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				if name == switches {
					n += status[name]
				}
				status[name] = n
			}
		}
		return nil
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		if err := read(thread + "/status"); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(thread + "/schedstat")
		if err != nil {
			return nil, err
		}
		nanos, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(nanos, 10, 64)
		if err != nil {
			return nil, err
		}
		status[runtimeNanos] += n
	}
	return status, nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
