package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"
)

// idle measures a separate relay process at default settings: its requests to the feed when
// idle, and its memory and processor time when idle and with a backlog.
//
// A range counts as idle a minute after its last change or after the start. Within the next
// 20 s the pauses grow to the maximum.
func idle(ctx context.Context, r *measure.Run) (err error) {
	s := backlog()
	settle, length := 85*time.Second, time.Minute
	if r.Quick {
		s.Contacts, settle, length = 1000, 2*time.Second, 2*time.Second
	}
	s.Pack = true
	st, err := openStore(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	b, err := openBroker(ctx, false, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var feed, all atomic.Int64
	st.cosmos.Control(cosmosemu.OpAny, func(c *cosmosemu.Call) *cosmosemu.Fault {
		all.Add(1)
		if c.Operation == cosmosemu.OpReadChangeFeed {
			feed.Add(1)
		}
		return nil
	})
	r.Step("idle: building and starting a relay process")
	p, err := startProcess(ctx, []string{
		"FEEDBOX_COSMOS_ENDPOINT=" + st.cosmos.Endpoint(), "FEEDBOX_COSMOS_KEY=" + st.cosmos.Key(),
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + b.bus.ConnectionString(), "FEEDBOX_SERVICEBUS_PACK_KEYS=true",
		fmt.Sprintf("FEEDBOX_RELAY_MAX_ITEMS=%d", maxItems),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	r.Step("idle: waiting %v for the pauses to grow", settle)
	if err := wait(ctx, settle); err != nil {
		return err
	}
	r.Step("idle: counting for %v", length)
	feedBefore, allBefore := feed.Load(), all.Load()
	cpuBefore, err := p.cpu()
	if err != nil {
		return err
	}
	if err := wait(ctx, length); err != nil {
		return err
	}
	cpu, err := p.cpu()
	if err != nil {
		return err
	}
	perMinute := func(n int64) float64 { return float64(n) / length.Minutes() }
	reads := perMinute(feed.Load() - feedBefore)
	resident, _, err := p.memory()
	if err != nil {
		return err
	}
	r.Add(
		measure.Cost("idle, feed reads", reads/float64(s.Partitions), "per range and minute").Wants(measure.AtMost(12)).
			Noting("%d ranges; %.0f requests of all kinds a minute", s.Partitions, perMinute(all.Load()-allBefore)),
		measure.Cost("idle, processor time of the relay process", measure.Millis(cpu-cpuBefore)/length.Minutes(), "ms per minute"),
		measure.Cost("idle, memory of the relay process", float64(resident)/(1<<20), "MB"),
	)
	return loaded(ctx, r, st, b, p)
}

// loaded gives the relay process a backlog.
func loaded(ctx context.Context, r *measure.Run, st *store, b *broker, p *process) error {
	gate := make(chan struct{})
	remove := st.cosmos.Control(cosmosemu.OpReadChangeFeed, func(*cosmosemu.Call) *cosmosemu.Fault { return &cosmosemu.Fault{Hold: gate} })
	r.Step("relay process: storing %d events", st.shape.total())
	err := st.fill(ctx)
	remove()
	close(gate)
	if err != nil {
		return err
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.accepted(ctx, st.shape.total()); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := p.cpu()
	if err != nil {
		return err
	}
	_, peak, err := p.memory()
	if err != nil {
		return err
	}
	r.Add(
		measure.Cost("relay process, processor time of an event", measure.Micros(after-before)/float64(st.shape.total()), "µs").
			Noting("packed; read, decode, encode, send; emulators not included; %.0f events/s", float64(st.shape.total())/took.Seconds()),
		measure.Cost("relay process, peak memory", float64(peak)/(1<<20), "MB").Noting("%d events, pages of %d, 4 ranges", st.shape.total(), maxItems),
	)
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
