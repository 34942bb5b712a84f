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

// relay is one relay process with its own proxies to the emulators.
type relay struct {
	name        string
	cosmos, bus *netfault.Proxy
	cmd         *exec.Cmd
	stdin       io.Closer // the process ends when it is closed
	out         tail
	done        chan struct{} // closed when the process has ended
	condition   Condition     // guarded by the engine
}

// startRelay starts a relay process that uses the emulators through proxies.
func (e *Engine) startRelay(place int, name string) (*relay, error) {
	r := &relay{name: name, done: make(chan struct{}), condition: Running}
	var err error
	if r.cosmos, err = netfault.Start(e.o.Cosmos.Addr()); err != nil {
		return nil, err
	}
	if r.bus, err = netfault.Start(e.o.Bus.Addr()); err != nil {
		r.cosmos.Close()
		return nil, err
	}
	r.cmd = e.o.Relay(place, name, r.cosmos.Addr(), r.bus.Addr())
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	ownGroup(r.cmd)
	if r.stdin, err = r.cmd.StdinPipe(); err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		r.cosmos.Close()
		r.bus.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	e.processes.Go(func() {
		_ = r.cmd.Wait() // ProcessState has the result
		r.cosmos.Close()
		r.bus.Close()
		close(r.done)
	})
	return r, nil
}

// kill ends the process as kill -9 does, and waits for its end.
func (r *relay) kill() {
	_ = r.cmd.Process.Kill() // an error means that it has already ended
	<-r.done
}

// network cuts or heals both directions to both emulators.
func (r *relay) network(cut bool) {
	way := netfault.Way{Hold: cut}
	r.cosmos.Set(way, way)
	r.bus.Set(way, way)
}

// end lets the process end, and kills it when ctx ends.
func (r *relay) end(ctx context.Context) error {
	_ = thaw(r.cmd) // because a frozen process does not read its input
	r.network(false)
	_ = r.stdin.Close()
	select {
	case <-r.done:
		if code := r.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s ended with exit code %d: %s", r.name, code, r.out.String())
		}
		return nil
	case <-ctx.Done():
		r.kill()
		return errors.Join(fmt.Errorf("%s did not end in time and was killed", r.name), ctx.Err())
	}
}

// ended reports whether the process has ended.
func (r *relay) ended() bool {
	select {
	case <-r.done:
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
