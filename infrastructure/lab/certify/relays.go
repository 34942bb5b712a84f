package certify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"time"
)

// relayCount is the number of relay processes that share the ranges.
const relayCount = 2

// drainTimeout bounds the stop of a relay process.
const drainTimeout = 30 * time.Second

// Kill is one kill -9 of a relay process.
type Kill struct {
	At      time.Duration `json:"atNs"` // after the start of the load
	Relay   string        `json:"relay"`
	Process int           `json:"process"`
	Down    time.Duration `json:"downNs"` // until its successor was started
}

// relays are the relay processes of a run. Only one goroutine at a time may use them.
type relays struct {
	command func(instance string) *exec.Cmd
	running [relayCount]*process
	started int
	kills   []Kill
}

type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer     // the process ends when it is closed
	done  chan struct{} // closed when the process has ended
}

func (r *relays) start(place int) error {
	r.started++
	p := &process{name: fmt.Sprintf("relay-%d", r.started), done: make(chan struct{})}
	p.cmd = r.command(p.name)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState has the result
		close(p.done)
	}()
	r.running[place] = p
	return nil
}

// kill kills relays at random times until ctx ends, and starts their successors. The seed decides the
// times and the victims. On average mean passes between two kills.
func (r *relays) kill(ctx context.Context, seed int64, mean time.Duration, log func(format string, args ...any)) error {
	rnd, began := rand.New(rand.NewPCG(uint64(seed), 1)), time.Now()
	for pause(ctx, mean/2+time.Duration(rnd.Int64N(int64(mean)))) {
		place, down := rnd.IntN(relayCount), time.Duration(rnd.Int64N(int64(mean/4)))
		victim := r.running[place]
		if err := victim.cmd.Process.Kill(); err != nil {
			return fmt.Errorf("%s ended without a kill: %w", victim.name, err)
		}
		<-victim.done
		r.kills = append(r.kills, Kill{At: time.Since(began), Relay: victim.name, Process: victim.cmd.Process.Pid, Down: down})
		log("%s (process %d) killed", victim.name, victim.cmd.Process.Pid)
		pause(ctx, down)
		if err := r.start(place); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all processes, and kills those that do not end in time.
func (r *relays) stop(ctx context.Context) error {
	var errs []error
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for _, p := range r.running {
		if p != nil {
			_ = p.stdin.Close()
		}
	}
	for _, p := range r.running {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-limit.Done():
			_ = p.cmd.Process.Kill()
			<-p.done
			errs = append(errs, fmt.Errorf("%s did not stop within %v and was killed", p.name, drainTimeout))
		}
	}
	return errors.Join(errs...)
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
