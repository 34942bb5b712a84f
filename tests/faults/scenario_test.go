package faults

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// scenario is one fault in one world.
type scenario struct {
	*testing.T
	*world.World
	result *testkit.Result
	struck atomic.Int64             // number of injected faults
	number int64                    // of the scenario in this process
	ports  atomic.Int64             // for addresses of the store
	spoil  func(body []byte) []byte // changes the store's answers to the test's own relays; set before they start

	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

var scenarios atomic.Int64

// runScenario runs a scenario in a bubble and records its result.
func runScenario(t *testing.T, r testkit.Result, topology world.Topology, run func(s *scenario)) {
	t.Helper()
	t.Parallel()
	r.Seed = testkit.Seed(t, r.Seed)
	defer func() { testkit.Record(t, r) }()
	runWorld(t, &r, topology, func(s *scenario) {
		defer func() {
			if r.Injections = s.struck.Load(); r.Injections == 0 {
				s.Error("the fault never struck: the test proves nothing")
			}
		}()
		run(s)
	})
}

// runWorld runs a scenario in a bubble with its own world.
func runWorld(t *testing.T, r *testkit.Result, topology world.Topology, run func(s *scenario)) {
	t.Helper()
	world.Bubble(t, func(t *testing.T) {
		began := time.Now()
		s := &scenario{T: t, result: r, number: scenarios.Add(1), rnd: rand.New(rand.NewPCG(r.Seed, 1000))}
		s.World = world.New(t, r.Seed, topology)
		defer func() {
			r.Simulated = time.Since(began).Hours()
			if t.Failed() && testing.Verbose() {
				_, _ = s.Trace().WriteTo(t.Output())
			}
		}()
		run(s)
	})
}

// judge settles the world, verifies the run and fills in the result.
func (s *scenario) judge() *verify.Run {
	s.Helper()
	run := s.Settle()
	s.verify(run)
	return run
}

// verify fails the test for each violation and counts them.
func (s *scenario) verify(run *verify.Run) {
	s.Helper()
	r := s.result
	r.Events += int64(len(run.Events))
	r.DuplicatesSent = s.Duplicates()
	r.Recovery = max(r.Recovery, run.Settled.Arrived.Seconds())
	if len(run.Events) == 0 {
		s.Error("no event was committed: the test proves nothing")
	}
	testkit.Judge(s, run, r)
}

// chance returns true with probability p. It is safe for concurrent use.
func (s *scenario) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Float64() < p
}

// between returns a random duration. It is safe for concurrent use.
func (s *scenario) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.pick(int(most-least)+1))
}

// pick returns a random number below n. It is safe for concurrent use.
func (s *scenario) pick(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

// sessionsHandledOnce fails the test for each event that was handled more than once.
func (s *scenario) sessionsHandledOnce(run *verify.Run) {
	s.Helper()
	times := make(map[string]int, len(run.Handled))
	for _, m := range run.Handled {
		if times[m.ID]++; times[m.ID] == 2 {
			s.Errorf("event %s of session %s, sequence %d, was handled again", m.ID, m.Session, m.Sequence)
		}
	}
}
