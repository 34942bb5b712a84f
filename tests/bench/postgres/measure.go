package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/tests/servers"
)

// Options selects the measurements.
type Options struct {
	Backlog Backlog
	Turns   int      // of each relay, in turn with the others
	Only    []string // relays; none: all
	// Latency is the time of commits at PerSecond, after the backlogs; 0: none.
	Latency   time.Duration
	PerSecond int
	Out       io.Writer
}

// Measure prints a line for each turn.
func Measure(ctx context.Context, o Options) error {
	return inLab(ctx, func(ctx context.Context, l *lab) error {
		w := &world{dir: l.TempDir()}
		chosen := slices.DeleteFunc(slices.Clone(peers), func(p peer) bool { return len(o.Only) > 0 && !slices.Contains(o.Only, p.name) })
		if err := w.build(ctx, chosen); err != nil {
			return err
		}
		w.postgres, w.rabbitmq = servers.StartPostgres(l), servers.StartRabbitMQ(l)
		urls := make([]string, len(chosen))
		for i := range chosen {
			urls[i] = w.postgres.Database(l)
		}
		header(o.Out)
		for n := range o.Turns {
			for i := range chosen {
				p := &chosen[(n+i)%len(chosen)] // the first relay changes in each round
				t := w.turn(p, urls[(n+i)%len(chosen)])
				if err := o.drain(ctx, p, t, n == 0 || !p.again); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
		}
		for n := range o.Turns {
			for i := range chosen {
				p := &chosen[(n+i)%len(chosen)]
				if o.Latency == 0 || p.commit == nil {
					continue
				}
				if err := o.latency(ctx, p, w.turn(p, w.postgres.Database(l))); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
		}
		return nil
	})
}

func (w *world) turn(p *peer, database string) turn {
	w.turns++
	return turn{world: w, number: w.turns, database: database, broker: w.rabbitmq.URL, exchange: fmt.Sprintf("%s%d", p.name, w.turns)}
}

// drain measures one turn of a relay with the backlog.
func (o Options) drain(ctx context.Context, p *peer, t turn, fill bool) (err error) {
	b := o.Backlog
	if p.slow {
		b.Events, b.Keys = b.Events/10, b.Keys/10
	}
	if fill {
		if err := p.fill(ctx, b, t); err != nil {
			return err
		}
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	return t.with(ctx, p, b.Events, nil, func(c *consumer, pid int) error {
		select {
		case <-c.began:
		case <-time.After(time.Minute):
			return errors.New("nothing came within a minute")
		}
		at, already := time.Now(), c.fresh.Load()
		before, err := t.times(pid)
		if err != nil {
			return err
		}
		if err := c.wait(ctx); err != nil {
			return err
		}
		took, n := time.Since(at), float64(c.fresh.Load()-already)
		after, err := t.times(pid)
		if err != nil {
			return err
		}
		line(o.Out, p.name, n/took.Seconds(), after.since(before), n, c)
		return nil
	})
}

// settle vacuums and writes a checkpoint before a turn, so that the turn does not pay for
// earlier ones.
func (t turn) settle(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, t.database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range []string{"VACUUM", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (t turn) times(relay int) (times, error) {
	return timesOf(relay, t.world.postgres.PID(), t.world.rabbitmq.PID())
}

// with runs do with a relay and a consumer of the given number of events.
func (t turn) with(ctx context.Context, p *peer, events int, got func(n int), do func(c *consumer, pid int) error) (err error) {
	queues, err := p.declare(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.remove(queues)) }()
	c, err := consume(t.broker, queues, events, got)
	if err != nil {
		return err
	}
	defer c.close()
	cmd := p.relay(ctx, t)
	var log bytes.Buffer // read after the process has ended
	cmd.Stderr, cmd.Stdout = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = do(c, cmd.Process.Pid)
	if stopErr := stop(cmd); err != nil || stopErr != nil {
		return fmt.Errorf("%w; its log:\n%s", errors.Join(err, stopErr), log.String())
	}
	return nil
}

// stop stops a relay with SIGTERM, as an operator would.
func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return cmd.Wait()
}

func header(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%-10s %9s  %8s %8s %8s %8s %8s   %s\n", "relay", "events/s", "µs all", "relay", "postgres", "rabbitmq", "consumer", "order")
}

func line(out io.Writer, name string, rate float64, used times, n float64, c *consumer) {
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	order := "kept"
	if late := c.disorder.Load(); late > 0 {
		order = fmt.Sprintf("broken: %d of %d behind a later one", late, len(c.seen))
	}
	if twice := c.repeats.Load(); twice > 0 {
		order += fmt.Sprintf(", %d twice", twice)
	}
	_, _ = fmt.Fprintf(out, "%-10s %9.0f  %8.1f %8.1f %8.1f %8.1f %8.1f   %s\n",
		name, rate, per(used.all()), per(used.relay), per(used.postgres), per(used.rabbitmq), per(used.consumer), order)
}
