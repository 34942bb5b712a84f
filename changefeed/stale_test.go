package changefeed_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// staleStore answers the first Read of a lease with what it first listed of it.
type staleStore struct {
	changefeed.LeaseStore
	mu    sync.Mutex
	first map[string]changefeed.Record // guarded by mu
	stale atomic.Int32                 // old answers left
	given atomic.Int32
}

func (s *staleStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		if _, known := s.first[r.ID]; !known {
			s.first[r.ID] = r
		}
	}
	return records, err
}

func (s *staleStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	s.mu.Lock()
	old, known := s.first[id]
	s.mu.Unlock()
	if known && s.stale.Add(-1) >= 0 {
		s.given.Add(1)
		return old, nil
	}
	return s.LeaseStore.Read(ctx, id)
}

// A store may answer with a record as it was before this host acquired the lease: that
// takes no lease away.
func TestAnOldAnswerCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		store := &staleStore{LeaseStore: w.store, first: map[string]changefeed.Record{}}
		var lost atomic.Int32
		p, err := changefeed.New(w.feed, store, w.got, &changefeed.Options{Host: "a", Observer: &changefeed.Observer{
			LeaseLost: func(changefeed.LeaseLost) { lost.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		eventually(t, time.Minute, "owned", func() bool { return len(p.Lag()) == 1 })
		time.Sleep(time.Minute)
		store.stale.Store(1)
		if err := w.operator().Retry(t.Context()); err != nil { // the next write of the host meets its ETag
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if store.given.Load() != 1 || lost.Load() != 0 {
			t.Errorf("%d old answers, %d leases lost", store.given.Load(), lost.Load())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
