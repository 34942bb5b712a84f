package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// Sample is an amount of work with its time and processor time. The zero value is no work.
// A sum of samples ([Sample.Add]) keeps its parts: its rate and its processor time per
// operation are their medians, so that one disturbed turn has no effect.
type Sample struct {
	Operations int64
	Elapsed    time.Duration
	CPU        time.Duration
	latency    *hdrhistogram.Histogram // nil if not recorded
	parts      []Sample                // of a sum, without parts of their own
}

// Rate returns operations per second.
func (s Sample) Rate() float64 {
	return s.median(func(part Sample) float64 {
		if part.Elapsed == 0 {
			return 0
		}
		return float64(part.Operations) / part.Elapsed.Seconds()
	})
}

// PerOperation returns the processor time of one operation.
func (s Sample) PerOperation() time.Duration {
	return time.Duration(s.median(func(part Sample) float64 {
		return float64(part.CPU) / float64(max(1, part.Operations))
	}))
}

// median returns the median of a value of all parts.
func (s Sample) median(of func(Sample) float64) float64 {
	values := make([]float64, 0, len(s.parts)+1)
	for _, part := range s.partsOrSelf() {
		values = append(values, of(part))
	}
	return quantile(values, 0.5)
}

// quantile returns the q-th quantile (0 to 1) of values, between two of them if need be.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	at := q * float64(len(values)-1)
	low := int(at)
	if low+1 == len(values) {
		return values[low]
	}
	return values[low] + (at-float64(low))*(values[low+1]-values[low])
}

// slowest returns the rate of the slowest of floors in the round of the i-th part.
func slowest(floors []Sample, i int) float64 {
	rate := math.Inf(1)
	for _, floor := range floors {
		if parts := floor.partsOrSelf(); i < len(parts) {
			rate = min(rate, parts[i].Rate())
		}
	}
	return rate
}

func (s Sample) partsOrSelf() []Sample {
	if len(s.parts) > 0 {
		return s.parts
	}
	return []Sample{{Operations: s.Operations, Elapsed: s.Elapsed, CPU: s.CPU}}
}

// Latency returns the q-th percentile (50, 99) of the time of one operation, or 0 if it was
// not recorded.
func (s Sample) Latency(q float64) time.Duration {
	if s.latency == nil {
		return 0
	}
	return time.Duration(s.latency.ValueAtQuantile(q)) * time.Microsecond
}

// Add returns the sum of both samples.
func (s Sample) Add(t Sample) Sample {
	sum := Sample{Operations: s.Operations + t.Operations, Elapsed: s.Elapsed + t.Elapsed, CPU: s.CPU + t.CPU}
	for _, part := range slices.Concat(s.partsOrSelf(), t.partsOrSelf()) {
		if part.Operations > 0 || part.Elapsed > 0 {
			sum.parts = append(sum.parts, part)
		}
	}
	for _, h := range []*hdrhistogram.Histogram{s.latency, t.latency} {
		if h == nil {
			continue
		}
		if sum.latency == nil {
			sum.latency = newHistogram()
		}
		sum.latency.Merge(h)
	}
	return sum
}

// newHistogram returns a histogram of microseconds up to a minute, with three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
}

// Took measures work, which counts as the given number of operations, in this process.
func Took(operations int64, work func() error) (Sample, error) {
	started, cpu := time.Now(), CPU()
	if err := work(); err != nil {
		return Sample{}, err
	}
	return Sample{Operations: operations, Elapsed: time.Since(started), CPU: CPU() - cpu}, nil
}

// Loop is a closed loop: every worker makes one operation after the other until length is
// over. It waits for the last operation and stops at the first error.
func Loop(ctx context.Context, length time.Duration, workers ...func(ctx context.Context) error) (Sample, error) {
	started, cpu := time.Now(), CPU()
	group, ctx := errgroup.WithContext(ctx)
	latencies := make([]*hdrhistogram.Histogram, len(workers))
	for i, work := range workers {
		group.Go(func() error {
			latencies[i] = newHistogram()
			for before := time.Now(); before.Sub(started) < length; {
				if err := work(ctx); err != nil {
					return err
				}
				after := time.Now()
				if err := latencies[i].RecordValue(after.Sub(before).Microseconds()); err != nil {
					return fmt.Errorf("an operation took %v: %w", after.Sub(before), err)
				}
				before = after
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Sample{}, err
	}
	sum := Sample{Elapsed: time.Since(started), CPU: CPU() - cpu, latency: newHistogram()}
	for _, h := range latencies {
		sum.Operations += h.TotalCount()
		sum.latency.Merge(h)
	}
	return sum, nil
}

// Turn is one turn of one side: it does some work and returns a sample of it.
type Turn func(ctx context.Context) (Sample, error)

// Alternate gives each side so many turns, one side after the other, and
// returns the sum of each. What disturbs the machine for longer than a turn
// disturbs all sides alike. The sides change places every round, so that none
// always comes after the same neighbour.
//
// Each turn begins after a collection of garbage. Otherwise the garbage of one side is
// collected in the turn of another: of the relay's turns of one second every third had a cycle
// of one second of processor time in it, and its ratio was 0.70 in one run and 1.01 in the next.
func Alternate(ctx context.Context, rounds int, sides ...Turn) ([]Sample, error) {
	if rounds < 1 || len(sides) == 0 {
		return nil, errors.New("there is nothing to alternate: a round and a side at least")
	}
	sums := make([]Sample, len(sides))
	for round := range rounds {
		for i := range sides {
			if round%2 == 1 {
				i = len(sides) - 1 - i
			}
			runtime.GC()
			s, err := sides[i](ctx)
			if err != nil {
				return nil, err
			}
			sums[i] = sums[i].Add(s)
		}
	}
	return sums, nil
}
