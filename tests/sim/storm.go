package sim

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
)

// Outcome is the result of a run.
type Outcome struct {
	Violations []string
	Broken     map[string]int // breaches by promise
	Run        *verify.Run
	Counts     map[string]int // faults by kind
	Duplicates int64          // messages that the broker dropped
	Requests   int            // answers received by clients
	Shops      int            // processes that change orders
	Sold       int            // acknowledged changes of orders
	Simulated  time.Duration
	Trace      *world.Trace
}

// storm executes a plan.
type storm struct {
	plan  *Plan
	w     *world.World
	down  atomic.Bool // relays must stay down
	begun sync.WaitGroup

	mu     sync.Mutex // guards counts
	counts map[string]int
	split  int
}

func (s *storm) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// splits reports whether the container may split once more. Splits are limited because each makes
// the run slower.
func (s *storm) splits() bool {
	s.split++
	return s.split <= 4
}

// Execute runs a plan in its own bubble and verifies the result.
func Execute(t *testing.T, p *Plan) *Outcome {
	t.Helper()
	var o *Outcome
	world.Bubble(t, func(t *testing.T) {
		began := time.Now()
		s := &storm{plan: p, w: world.New(t, p.Seed, p.Topology), counts: map[string]int{}}
		load := s.w.StartLoad(p.Load)
		s.run(began)
		load.Stop()
		s.begun.Wait()
		run := s.w.Settle()
		report := run.Report()
		s.w.WriteSteps()
		o = &Outcome{
			Violations: report.Lines(), Broken: report.Broken, Run: run, Counts: s.counts, Duplicates: s.w.Duplicates(), Shops: s.plan.Topology.Shops, Sold: s.w.Sold(),
			Simulated: time.Since(began), Trace: s.w.Trace(),
		}
		for _, n := range load.Requests() {
			o.Requests += n
		}
	})
	return o
}

// step is the beginning or the end of a fault.
type step struct {
	at time.Duration
	do func()
}

// run starts and ends the faults on schedule.
func (s *storm) run(began time.Time) {
	var steps []step
	for _, f := range s.plan.Faults {
		steps = append(steps, step{f.At, func() {
			s.w.Trace().Add("fault", "%s", f)
			end, struck := kinds[f.Kind].begin(s, f)
			if !struck {
				return
			}
			s.count(f.Kind)
			if end != nil {
				at := time.Since(began) + f.For
				i, _ := slices.BinarySearchFunc(steps, at, func(st step, at time.Duration) int { return cmp.Compare(st.at, at) })
				steps = slices.Insert(steps, i, step{at, func() {
					s.w.Trace().Add("fault", "ends: %s", f)
					end()
				}})
			}
		}})
	}
	for len(steps) > 0 && steps[0].at < s.plan.Length {
		next := steps[0]
		steps = steps[1:]
		s.w.Sleep(max(0, next.at-time.Since(began)))
		next.do()
		if s.down.Load() {
			for _, name := range s.w.Kind("relay") {
				s.w.Stop(name)
			}
		}
	}
	s.w.Sleep(max(0, s.plan.Length-time.Since(began)))
}
