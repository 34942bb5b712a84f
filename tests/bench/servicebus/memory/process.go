package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu"
)

const topic = "bench"

func subscription(i int) string { return "s" + strconv.Itoa(i) }

// serve runs the emulator until the standard input ends. For each line it prints the bytes of
// its heap. For "collect" it first collects garbage and returns free memory to the system.
func serve(dir string, s settings) error {
	t := busemu.Topic{Name: topic, RequiresDuplicateDetection: true, MaxSizeMB: 1 << 20}
	for i := range s.subscriptions {
		t.Subscriptions = append(t.Subscriptions, busemu.Subscription{Name: subscription(i), RequiresSession: true})
	}
	srv, err := busemu.Start(&busemu.Options{DataDir: dir, AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{t}}})
	if err != nil {
		return err
	}
	fmt.Println(srv.ConnectionString())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() == "collect" {
			debug.FreeOSMemory()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapAlloc)
	}
	return errors.Join(in.Err(), srv.Close())
}

// process is the process of the emulator.
type process struct {
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *bufio.Reader
	connection string
}

func start(ctx context.Context, dir string, s settings) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program, "-serve", dir, "-subscriptions", strconv.Itoa(s.subscriptions))}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := p.out.ReadString('\n')
	p.connection = strings.TrimSpace(line)
	return p, err
}

func (p *process) stop() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}

// ask sends a line and returns the bytes of the heap.
func (p *process) ask(line string) (heap int64, err error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return 0, err
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
}

// report prints the memory of the process, after a collection if line is "collect".
func (p *process) report(when, line string) error {
	heap, err := p.ask(line)
	if err != nil {
		return err
	}
	return p.print(when, heap)
}

func (p *process) print(when string, heap int64) error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return err
	}
	sizes := make(map[string]int64)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); len(fields) == 2 && fields[1] == "kB" {
			sizes[name], _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	fmt.Printf("%-16s resident %5d MB, at most %5d MB; heap %5d MB; processor %4.0f s\n",
		when, sizes["VmRSS"]>>10, sizes["VmHWM"]>>10, heap>>20, p.processor().Seconds())
	return nil
}

// processor returns the processor time of the process: fields 14 and 15 of its stat, in
// hundredths of a second.
func (p *process) processor() time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name, which may contain spaces
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
