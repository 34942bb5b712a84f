package faults

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// story is one fault in one world.
type story struct {
	*testing.T
	*world.World
	result *testkit.Result
	struck atomic.Int64             // how often the fault struck
	number int64                    // of the story in this process
	ports  atomic.Int64             // of the store's addresses
	spoil  func(body []byte) []byte // the store's answers to relays of the test's own; set before they start

	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

var stories atomic.Int64

// tell runs a story in a bubble and records its result.
func tell(t *testing.T, r testkit.Result, topology world.Topology, scenario func(s *story)) {
	t.Helper()
	t.Parallel()
	r.Seed = testkit.Seed(t, r.Seed)
	defer func() { testkit.Record(t, r) }()
	play(t, &r, topology, func(s *story) {
		defer func() {
			if r.Injections = s.struck.Load(); r.Injections == 0 {
				s.Error("the fault never struck: the test proves nothing")
			}
		}()
		scenario(s)
	})
}

// play runs a scenario in a bubble with a world of its own.
func play(t *testing.T, r *testkit.Result, topology world.Topology, scenario func(s *story)) {
	t.Helper()
	world.Bubble(t, func(t *testing.T) {
		began := time.Now()
		s := &story{T: t, result: r, number: stories.Add(1), rnd: rand.New(rand.NewPCG(r.Seed, 1000))}
		s.World = world.New(t, r.Seed, topology)
		defer func() {
			r.Simulated = time.Since(began).Hours()
			if t.Failed() && testing.Verbose() {
				_, _ = s.Trace().WriteTo(t.Output())
			}
		}()
		scenario(s)
	})
}

// judge settles the world, verifies what is left behind and fills the result in.
func (s *story) judge() *verify.Run {
	s.Helper()
	run := s.Settle()
	s.verify(run)
	return run
}

// verify fails the test for each breach of a promise and counts them.
func (s *story) verify(run *verify.Run) {
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

// chance is true with probability p. Safe for concurrent use.
func (s *story) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Float64() < p
}

// between is a random duration. Safe for concurrent use.
func (s *story) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.pick(int(most-least)+1))
}

// pick is a random number below n. Safe for concurrent use.
func (s *story) pick(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

// sessionsHandledOnce fails the test for each event that handlers got more than once.
func (s *story) sessionsHandledOnce(run *verify.Run) {
	s.Helper()
	times := make(map[string]int, len(run.Handled))
	for _, m := range run.Handled {
		if times[m.ID]++; times[m.ID] == 2 {
			s.Errorf("event %s of session %s, sequence %d, was handled again", m.ID, m.Session, m.Sequence)
		}
	}
}
