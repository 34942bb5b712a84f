package servicebus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/bench/measure"
)

const (
	startGoal = 15.0 // ms
	idleGoal  = 20.0 // MB
)

// startAndIdle measures the time of Start with the outbox's entities, and the memory of a
// process that only runs an idle emulator.
func startAndIdle(ctx context.Context, r *measure.Run) error {
	for _, k := range []kind{memoryKind, diskKind} {
		r.Step("start, %s", k)
		median, worst, err := starts(k, r.Quick)
		if err != nil {
			return err
		}
		r.Add(measure.Cost("start, "+string(k), measure.Millis(median), "ms").Wants(measure.AtMost(startGoal)).
			Noting("median of 21 starts of a broker with a topic and a subscription, worst %v", round(worst)))
	}
	r.Step("idle")
	idle, err := observeIdle(ctx, r.Quick)
	if err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	r.Add(
		measure.Cost("idle memory", idle.heap, "MB").Wants(measure.AtMost(idleGoal)).
			Noting("heap and stacks in use of a process of its own with a client connected; resident %.1f MB, of which %.1f anonymous and %.1f mapped program text", idle.resident, idle.anonymous, idle.file),
		measure.Cost("idle wake-ups", idle.wakeups, "1/s").
			Noting("voluntary context switches of all threads, with a client connected; %.2f ms CPU a second", idle.cpu),
	)
	return nil
}

func starts(k kind, quick bool) (median, worst time.Duration, err error) {
	times := make([]time.Duration, 21)
	if quick {
		times = times[:3]
	}
	for i := range times {
		o := &busemu.Options{Topology: outbox()}
		if k == diskKind {
			if o.DataDir, err = os.MkdirTemp("", "feedbox-bench-*"); err != nil {
				return 0, 0, err
			}
		}
		began := time.Now()
		srv, err := busemu.Start(o)
		times[i] = time.Since(began)
		if err == nil {
			err = srv.Close()
		}
		if o.DataDir != "" {
			err = errors.Join(err, os.RemoveAll(o.DataDir))
		}
		if err != nil {
			return 0, 0, err
		}
	}
	slices.Sort(times)
	return times[len(times)/2], times[len(times)-1], nil
}

// outbox returns the entities that the outbox needs.
func outbox() *busemu.Topology {
	return &busemu.Topology{Topics: []busemu.Topic{{
		Name:                       "contacts",
		RequiresDuplicateDetection: true,
		Subscriptions:              []busemu.Subscription{{Name: "contacts", RequiresSession: true}},
	}}}
}
