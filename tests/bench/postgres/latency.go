package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// warmUp is the time of commits before the measurement.
const warmUp = 3 * time.Second

// writers is the maximum number of concurrent commits.
const writers = 16

// latency commits events at a constant rate, independently of their delivery. It measures the
// time of each event to the consumer, from the acknowledgement of its commit and from the start
// of its commit.
func (o Options) latency(ctx context.Context, p *peer, t turn) error {
	b := o.Backlog
	b.Events = 0
	if err := p.fill(ctx, b, t); err != nil {
		return err
	}
	total := int((o.Latency + warmUp).Seconds() * float64(o.PerSecond))
	sent, acknowledged, received := make([]atomic.Int64, total), make([]atomic.Int64, total), make([]atomic.Int64, total)
	began := time.Now()
	got := func(n int) { received[n].Store(int64(time.Since(began))) }
	return t.with(ctx, p, total, got, func(c *consumer, pid int) error {
		config, err := pgxpool.ParseConfig(t.database)
		if err != nil {
			return err
		}
		config.MaxConns, config.MinConns = writers, writers
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return err
		}
		defer pool.Close()
		time.Sleep(5 * time.Second) // the relay owns its ranges, the pool its connections
		began = time.Now()
		before, err := t.times(pid)
		if err != nil {
			return err
		}
		var next atomic.Int64
		group, groupCtx := errgroup.WithContext(ctx)
		for range writers {
			group.Go(func() error {
				for {
					n := int(next.Add(1) - 1)
					if n >= total {
						return nil
					}
					time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(o.PerSecond))))
					sent[n].Store(int64(time.Since(began)))
					if err := p.commit(groupCtx, pool, b, n); err != nil {
						return err
					}
					acknowledged[n].Store(int64(time.Since(began)))
				}
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := c.wait(ctx); err != nil {
			return err
		}
		after, err := t.times(pid)
		if err != nil {
			return err
		}
		var late int
		fromCommit, fromSend := make([]time.Duration, 0, total), make([]time.Duration, 0, total)
		for n := int(warmUp.Seconds() * float64(o.PerSecond)); n < total; n++ {
			fromCommit = append(fromCommit, time.Duration(max(0, received[n].Load()-acknowledged[n].Load())))
			fromSend = append(fromSend, time.Duration(received[n].Load()-sent[n].Load()))
			if time.Duration(sent[n].Load())-time.Duration(n)*time.Second/time.Duration(o.PerSecond) > 5*time.Millisecond {
				late++
			}
		}
		line(o.Out, p.name, float64(total)/time.Since(began).Seconds(), after.since(before), float64(total), c)
		_, _ = fmt.Fprintf(o.Out, "%-10s latency at %d/s: p50 %.1f, p99 %.1f, most %.1f ms; from the start of the commit p50 %.1f, p99 %.1f ms; %.1f %% of commits began more than 5 ms late\n", p.name, o.PerSecond,
			quantile(fromCommit, 0.5), quantile(fromCommit, 0.99), quantile(fromCommit, 1), quantile(fromSend, 0.5), quantile(fromSend, 0.99), 100*float64(late)/float64(len(fromSend)))
		return nil
	})
}

// quantile returns milliseconds.
func quantile(of []time.Duration, q float64) float64 {
	slices.Sort(of)
	return float64(of[min(len(of)-1, int(q*float64(len(of))))].Microseconds()) / 1000
}
