package changefeed

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// workers are the workers of a run, one for each lease it owns.
type workers struct {
	*env
	splits  *splits
	paused  atomic.Bool  // all ranges are paused
	handled atomic.Int64 // documents handled
	wait    sync.WaitGroup

	mu      sync.Mutex
	byLease map[string]*worker // guarded by mu
}

func (s *workers) all() []*worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byLease))
}

func (s *workers) of(lease string) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byLease[lease]
}

// start runs a worker for a lease whose acquisition began at began.
func (s *workers) start(ctx context.Context, lease Lease, began clockReading) {
	fenced, f := newFence(ctx, s.clocks(), began, s.opts.Expiry-s.opts.margin())
	kick := newSignal()
	w := &worker{
		workers: s, cancel: f.revoke, kick: kick, began: began.monotonic,
		delivery: newDelivery(fenced, s.env, newKeeper(s.env, lease, f, began.monotonic, kick), &s.handled),
	}
	s.mu.Lock()
	s.byLease[lease.ID] = w
	s.mu.Unlock()
	s.wait.Go(func() {
		w.run(ctx)
		s.mu.Lock()
		delete(s.byLease, lease.ID)
		s.mu.Unlock()
		s.relist.send()
	})
}

func (s *workers) clocks() clocks { return clocks{clock: s.clock, wall: s.opts.Now} }

// pause makes all workers hold their leases without delivering, or resume.
func (s *workers) pause(on bool) {
	if s.paused.Swap(on) != on {
		for _, w := range s.all() {
			w.kick.send()
		}
	}
}

// drain makes all workers release their leases, each to the host named for it. Handlers
// must end by the deadline, also those of a worker that was stopped before.
func (s *workers) drain(to map[string]hostKey, deadline time.Time) {
	all := s.all()
	for _, w := range all {
		w.stop(stopOrder{handoff: to[w.Lease], reason: "drain"})
	}
	defer s.clock.AfterFunc(max(0, deadline.Sub(s.clock.Now())), func() {
		for _, w := range all {
			w.cancel(ErrDraining)
		}
	})()
	s.wait.Wait()
}
