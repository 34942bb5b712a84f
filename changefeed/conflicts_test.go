package changefeed_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
	"feedbox/tests/requests"
)

// lagging is a lease store whose reads can return old versions.
type lagging struct {
	changefeed.LeaseStore
	old atomic.Pointer[map[string]changefeed.Record] // nil: reads are fresh
	all bool                                         // listings, too
}

// freeze makes reads return the records as they are now.
func (s *lagging) freeze(t *testing.T) {
	t.Helper()
	records, err := s.LeaseStore.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]changefeed.Record{}
	for _, r := range records {
		old[r.ID] = r
	}
	s.old.Store(&old)
}

func (s *lagging) Read(ctx context.Context, id string) (changefeed.Record, error) {
	if old := s.old.Load(); old != nil {
		return (*old)[id], nil
	}
	return s.LeaseStore.Read(ctx, id)
}

func (s *lagging) List(ctx context.Context, prefix string) (records []changefeed.Record, err error) {
	old := s.old.Load()
	if old == nil || !s.all {
		return s.LeaseStore.List(ctx, prefix)
	}
	for id, r := range *old {
		if strings.HasPrefix(id, prefix) {
			records = append(records, r)
		}
	}
	return records, nil
}

// A store without strong reads returns old versions for some seconds.
func TestConflictsWithStaleReadsCostFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var owner, operator requests.Counts
		store := &lagging{LeaseStore: w.store}
		p, err := changefeed.New(w.feed, owner.Store(store), w.got, &changefeed.Options{Host: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })

		store.freeze(t)
		time.Sleep(10 * time.Second) // until the owner has written once more
		if err := w.operator().PauseLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := owner.Requests()
		time.Sleep(3 * time.Second)
		after := owner.Requests()
		if n := after.LeaseReplaces + after.LeaseReads - before.LeaseReplaces - before.LeaseReads; n > 15 {
			t.Errorf("%d requests of the owner within 3 s of one conflict", n)
		}
		store.old.Store(nil)
		time.Sleep(10 * time.Second)
		if l := w.leases()[0]; l.Owner != "a" || l.Epoch != 1 || !l.Request.Paused {
			t.Errorf("the lease is %+v", l)
		}

		slow := &lagging{LeaseStore: w.store, all: true}
		slow.freeze(t)
		time.Sleep(10 * time.Second)
		time.AfterFunc(2*time.Second, func() { slow.old.Store(nil) })
		began := time.Now()
		if err := changefeed.NewOperator(w.feed, operator.Store(slow), nil).ResumeLeases(t.Context()); err != nil {
			t.Errorf("the operator: %v after %s", err, time.Since(began))
		}
		if n := operator.Requests().Leases(); n > 20 || w.leases()[0].Request.Paused {
			t.Errorf("%d requests of the operator; the lease is %+v", n, w.leases()[0])
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// withoutPause is a lease store whose replicas may not have the pause of all hosts.
type withoutPause struct {
	changefeed.LeaseStore
	hidden atomic.Bool
}

func (s *withoutPause) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	if s.hidden.Load() {
		records = slices.DeleteFunc(records, func(r changefeed.Record) bool { return strings.HasSuffix(r.ID, ".pause") })
	}
	return records, err
}

// A listing without the pause ends none, neither for a host that is paused nor for one that starts.
func TestListingOfADelayedReplicaEndsNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, nil).stop()
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		store := &withoutPause{LeaseStore: w.store}
		w.put(5, 5)
		start := func() (stop func()) {
			p, err := changefeed.New(w.feed, store, w.got, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			time.Sleep(time.Minute)
			return func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
		for _, atStart := range []bool{false, true} {
			store.hidden.Store(atStart)
			stop := start()
			store.hidden.Store(true)
			time.Sleep(time.Minute)
			stop()
			if n := w.got.count(); n != 0 {
				t.Errorf("hidden at the start: %t: %d deliveries in the pause", atStart, n)
			}
		}
		store.hidden.Store(false)
		stop := start()
		if err := w.operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 5 })
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		store.hidden.Store(true)
		w.put(5, 5)
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 5 {
			t.Errorf("%d deliveries in the second pause", n-5)
		}
		stop()
	})
}

// No owner reads the request of a lease that was split.
func TestPauseDuringASplitReachesTheParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.store = memstore.New(&memstore.Options{Before: func(ctx context.Context, op memstore.Op) error {
			if op.Kind == memstore.Create && strings.Contains(op.ID, "20000000") { // of a child
				return pause(ctx, 3*time.Second)
			}
			return nil
		}})
		w.start("a", nil, &changefeed.Options{PollMax: time.Second})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		parent := w.leases()[0]
		w.feed.Split("20")
		eventually(t, time.Minute, "splitting", func() bool { return w.leases()[0].State == changefeed.LeaseSplit })
		if err := w.operator().PauseLeases(t.Context(), parent.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second) // until the owner has noticed
		w.put(20, 20)
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 0 || len(w.leases()) != 2 {
			t.Errorf("%d deliveries of %d paused leases", n, len(w.leases()))
		}
		if err := w.operator().ResumeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 20 })
	})
}
