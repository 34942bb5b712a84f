package playground

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"feedbox/infrastructure/lab/netfault"
)

// Condition is the condition of a relay.
type Condition string

// The conditions of a relay.
const (
	Running Condition = "running"
	Frozen  Condition = "frozen"
	Cut     Condition = "cut off"
	Killed  Condition = "killed"
)

// Process is a relay process, which ends when its standard input ends.
type Process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   tail
	done  chan struct{} // closed when the process has ended
}

// StartProcess starts a process in a process group of its own, so that Ctrl-C does not reach it. ended is
// called after its end; it may be nil.
func StartProcess(name string, cmd *exec.Cmd, ended func()) (*Process, error) {
	p := &Process{name: name, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	ownGroup(cmd)
	var err error
	if p.stdin, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState has the result
		if ended != nil {
			ended()
		}
		close(p.done)
	}()
	return p, nil
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process as kill -9 does, and waits for its end. It reports whether the process was running.
func (p *Process) Kill() bool {
	err := p.cmd.Process.Kill() // an error means that it has already ended
	<-p.done
	return err == nil
}

// relay is one relay process with its own proxies to the emulators.
type relay struct {
	*Process
	cosmos, bus *netfault.Proxy
	condition   Condition // guarded by the engine
}

// startRelay starts a relay process that uses the emulators through proxies.
func (e *Engine) startRelay(place int, name string) (*relay, error) {
	r := &relay{condition: Running}
	var err error
	if r.cosmos, err = netfault.Start(e.o.Cosmos.Addr()); err != nil {
		return nil, err
	}
	if r.bus, err = netfault.Start(e.o.Bus.Addr()); err != nil {
		r.cosmos.Close()
		return nil, err
	}
	e.processes.Add(1)
	closeProxies := func() {
		r.cosmos.Close()
		r.bus.Close()
		e.processes.Done()
	}
	if r.Process, err = StartProcess(name, e.o.Relay(place, name, r.cosmos.Addr(), r.bus.Addr()), closeProxies); err != nil {
		closeProxies()
		return nil, err
	}
	return r, nil
}

// network cuts or heals both directions to both emulators.
func (r *relay) network(cut bool) {
	way := netfault.Way{Hold: cut}
	r.cosmos.Set(way, way)
	r.bus.Set(way, way)
}

// end continues a frozen relay and heals its network, so that it can end.
func (r *relay) end(ctx context.Context) error {
	_ = thaw(r.cmd) // because a frozen process does not read its input
	r.network(false)
	return r.End(ctx)
}

// End lets the process end, and kills it when ctx ends.
func (p *Process) End(ctx context.Context) error {
	_ = p.stdin.Close()
	select {
	case <-p.done:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s ended with exit code %d: %s", p.name, code, p.out.String())
		}
		return nil
	case <-ctx.Done():
		p.Kill()
		return errors.Join(fmt.Errorf("%s did not end in time and was killed", p.name), ctx.Err())
	}
}

// ended reports whether the process has ended.
func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// drainTimeout bounds the shutdown of relays.
const drainTimeout = 15 * time.Second

// tail keeps the end of the output of a process.
type tail struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailSize {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf[max(0, len(t.buf)-tailSize):]))
}
