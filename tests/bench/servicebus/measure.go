// Package servicebus is the benchmark's stage for the Service Bus emulator: the real
// azservicebus client against the emulator in memory and on disk, compared with the same
// client against a floor, a broker that stores nothing.
//
// Client and broker share the process and the machine's cores. The sides take turns. Each
// turn starts a new broker, warms up the client before the measurement, and checks the
// broker's counters at the end: a message that is lost or counted twice fails the stage.
//
// Every body has 512 bytes. "x64" in a figure's name is the number of operations in flight.
// Processor time is the time of client and broker per message; the difference to the floor
// is the cost of the broker itself.
package servicebus

import (
	"context"
	"fmt"
	"time"

	"feedbox/tests/bench/measure"
)

// The wanted shares of the floor's rate: in memory 0.6, durable 0.4.
const (
	memoryGoal = 0.6
	diskGoal   = 0.4
)

// Measure measures rates compared with the floor's, then start and idle cost.
func Measure(ctx context.Context, r *measure.Run) error {
	rounds, length := 20, 300*time.Millisecond
	sessions := 1000
	if r.Quick {
		rounds, length, sessions = 1, 50*time.Millisecond, 64
	}
	for _, s := range []send{{0, 64}, {10, 16}, {100, 16}} {
		err := compare(ctx, r, s.String(), rounds, diskGoal, floorKind, func(k kind) measure.Turn { return s.on(k, length) })
		if err != nil {
			return err
		}
	}
	// With one batch in flight on disk, each batch costs one fsync. So the floor is a broker
	// that only makes the fsync.
	for _, s := range []send{{10, 1}, {100, 1}} {
		err := compare(ctx, r, s.String(), rounds, diskGoal, syncedKind, func(k kind) measure.Turn { return s.on(k, length) })
		if err != nil {
			return err
		}
	}
	in := receive{backlog: sessions, perSession: 10, inFlight: 64}
	if err := compare(ctx, r, in.String(), min(rounds, 3), diskGoal, floorKind, in.on); err != nil {
		return err
	}
	return startAndIdle(ctx, r)
}

// compare measures the floor, the emulator in memory and the emulator on disk in turns with one
// kind of work. The emulator on disk is compared with diskFloor.
func compare(ctx context.Context, r *measure.Run, name string, rounds int, goal float64, diskFloor kind, on func(kind) measure.Turn) error {
	r.Step("%s, %d rounds", name, rounds)
	kinds := []kind{floorKind, memoryKind, diskKind}
	if diskFloor != floorKind {
		kinds = append(kinds, diskFloor)
	}
	turns := make([]measure.Turn, len(kinds))
	for i, k := range kinds {
		turns[i] = on(k)
	}
	sums, err := measure.Alternate(ctx, rounds, turns...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	floor, memory, disk, under := sums[0], sums[1], sums[2], sums[len(sums)-1]
	if diskFloor == floorKind {
		under = floor
	}
	r.Add(
		figure(name+", memory", memory, floor, floorKind).Wants(measure.RatioAtLeast(memoryGoal)),
		figure(name+", disk", disk, under, diskFloor).Wants(measure.RatioAtLeast(goal)),
	)
	return nil
}

func figure(name string, s, floor measure.Sample, floorKind kind) measure.Figure {
	f := measure.Rate(name, s.Rate(), "msg/s").OverRounds(s, floor).Using(s.PerOperation(), floor.PerOperation())
	note := fmt.Sprintf("beside the %s; by processor time %.2f", floorKind, float64(floor.PerOperation())/float64(max(1, s.PerOperation())))
	if s.Latency(50) > 0 {
		note += fmt.Sprintf("; p50 %v, p99 %v, floor %v, %v", round(s.Latency(50)), round(s.Latency(99)), round(floor.Latency(50)), round(floor.Latency(99)))
	}
	return f.Noting("%s", note)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
