package api

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// Config says how much is measured. Zero values mean the defaults.
type Config struct {
	Contacts int           // that are updated, default 256
	Clients  int           // at the same time, default 16
	Turns    int           // of each side, default 5
	Turn     time.Duration // length of one turn, default 2 s
	Warmup   time.Duration // of each side before the first turn, default 1 s
}

// Side is the result of one side.
type Side struct {
	Updates   int64         `json:"updates"`
	PerSecond float64       `json:"perSecond"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	// CPU is the processor time of this process for one update: API or loop,
	// SDK, emulator and load generator together. Unlike the rate it says
	// something on a machine that is busy with other things.
	CPU time.Duration `json:"cpu"`
}

// Report is the result of a measurement.
type Report struct {
	Clients int     `json:"clients"`
	API     Side    `json:"api"`
	Bare    Side    `json:"bare"`
	Ratio   float64 `json:"ratio"` // of updates per second, API to bare
	// CPURatio is the ratio that processor time alone would give: bare to API.
	CPURatio float64 `json:"cpuRatio"`
}

// String is a table for people.
func (r Report) String() string {
	line := func(name string, s Side) string {
		return fmt.Sprintf("%-8s %8.0f updates/s   p50 %8v   p99 %8v   CPU %6v\n", name, s.PerSecond,
			s.P50.Round(10*time.Microsecond), s.P99.Round(10*time.Microsecond), s.CPU.Round(time.Microsecond))
	}
	return line("bare", r.Bare) + line("api", r.API) + fmt.Sprintf("ratio    %8.2f   by processor time %.2f   (%d clients)", r.Ratio, r.CPURatio, r.Clients)
}

// worker makes one update.
type worker func(ctx context.Context) error

// Measure runs both sides in turns. Progress, if not nil, is told after each
// turn how many of all are done.
func Measure(ctx context.Context, c Config, progress func(done, all int)) (Report, error) {
	c = c.withDefaults()
	w, err := newWorld(ctx, c)
	if err != nil {
		return Report{}, err
	}
	defer w.close()
	if progress == nil {
		progress = func(int, int) {}
	}
	api, bare := newSide(w.apiWorkers), newSide(w.bareWorkers)
	for _, side := range []*side{bare, api} {
		if err := side.run(ctx, c.Warmup); err != nil {
			return Report{}, err
		}
		side.reset()
	}
	all := 2 * c.Turns
	for turn := range c.Turns {
		for i, side := range []*side{bare, api} {
			if err := side.run(ctx, c.Turn); err != nil {
				return Report{}, err
			}
			progress(2*turn+i+1, all)
		}
	}
	report := Report{Clients: c.Clients, API: api.result(), Bare: bare.result()}
	report.Ratio = report.API.PerSecond / report.Bare.PerSecond
	report.CPURatio = float64(report.Bare.CPU) / float64(report.API.CPU)
	return report, w.verify(ctx, api.total+bare.total)
}

func (c Config) withDefaults() Config {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.Contacts, 256)
	set(&c.Clients, 16)
	set(&c.Turns, 5)
	if c.Turn == 0 {
		c.Turn = 2 * time.Second
	}
	if c.Warmup == 0 {
		c.Warmup = time.Second
	}
	return c
}

// side collects the measurements of one side over its turns.
type side struct {
	workers []worker
	latency *hdrhistogram.Histogram
	updates int64
	total   int64 // with warm-up
	elapsed time.Duration
	cpu     time.Duration
}

func newSide(workers []worker) *side {
	s := &side{workers: workers}
	s.reset()
	return s
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(10*time.Second/time.Microsecond), 3)
}

func (s *side) reset() {
	s.latency, s.updates, s.elapsed, s.cpu = newHistogram(), 0, 0, 0
}

// run lets all workers update until the turn is over. The clock stops when
// the last one has finished.
func (s *side) run(ctx context.Context, turn time.Duration) error {
	started, cpu := time.Now(), processorTime()
	group, ctx := errgroup.WithContext(ctx)
	histograms := make([]*hdrhistogram.Histogram, len(s.workers))
	for i, work := range s.workers {
		group.Go(func() error {
			histograms[i] = newHistogram()
			for time.Since(started) < turn {
				before := time.Now()
				if err := work(ctx); err != nil {
					return err
				}
				if err := histograms[i].RecordValue(int64(time.Since(before) / time.Microsecond)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.elapsed += time.Since(started)
	s.cpu += processorTime() - cpu
	for _, h := range histograms {
		s.updates += h.TotalCount()
		s.total += h.TotalCount()
		s.latency.Merge(h)
	}
	return nil
}

func (s *side) result() Side {
	quantile := func(q float64) time.Duration {
		return time.Duration(s.latency.ValueAtQuantile(q)) * time.Microsecond
	}
	return Side{Updates: s.updates, PerSecond: float64(s.updates) / s.elapsed.Seconds(), P50: quantile(50), P99: quantile(99), CPU: s.cpu / time.Duration(max(1, s.updates))}
}

// processorTime is what this process has used, in user and in system mode.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
