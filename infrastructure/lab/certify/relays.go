package certify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"time"

	"feedbox/infrastructure/lab/playground"
)

// relayCount is the number of relay processes that share the ranges.
const relayCount = 2

// drainTimeout bounds the stop of relays and clients.
const drainTimeout = 30 * time.Second

// Kill is one kill -9 of a relay process.
type Kill struct {
	At      time.Duration `json:"atNs"` // after the start of the load
	Process int           `json:"process"`
	Down    time.Duration `json:"downNs"` // until its successor was started
}

// relays are the relay processes of a run. Only one goroutine at a time may use them.
type relays struct {
	command func(instance string) *exec.Cmd
	running [relayCount]*playground.Process
	started int
	kills   []Kill
}

func (r *relays) start(place int) (err error) {
	r.started++
	name := fmt.Sprintf("relay-%d", r.started)
	r.running[place], err = playground.StartProcess(name, r.command(name), nil)
	return err
}

// kill kills relays at random times until ctx ends, and starts their successors. The seed decides the
// times and the victims. On average mean passes between two kills.
func (r *relays) kill(ctx context.Context, seed int64, mean time.Duration, log func(format string, args ...any)) error {
	rnd, began := rand.New(rand.NewPCG(uint64(seed), 1)), time.Now()
	for pause(ctx, mean/2+time.Duration(rnd.Int64N(int64(mean)))) {
		place, down := rnd.IntN(relayCount), time.Duration(rnd.Int64N(int64(mean/4)))
		victim := r.running[place]
		if !victim.Kill() {
			return errors.Join(errors.New("a relay ended without a kill"), victim.End(ctx))
		}
		r.kills = append(r.kills, Kill{At: time.Since(began), Process: victim.PID(), Down: down})
		log("relay killed (process %d)", victim.PID())
		pause(ctx, down)
		if err := r.start(place); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all processes, and kills those that do not end in time.
func (r *relays) stop(ctx context.Context) (err error) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for _, p := range r.running {
		if p != nil {
			err = errors.Join(err, p.End(limit))
		}
	}
	return err
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
