package changefeed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// server has the feed and the leases, so that a failover affects both.
type server struct {
	w    *world
	term atomic.Value // a string
}

func newServer(w *world, term string) *server {
	s := &server{w: w}
	s.term.Store(term)
	return s
}

func (s *server) current() string { return s.term.Load().(string) }

type serverStore struct {
	changefeed.LeaseStore
	*server
}

func (s serverStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	for i := range records {
		records[i].Term = s.current()
	}
	return records, err
}

func (s serverStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	r, err := s.LeaseStore.Read(ctx, id)
	r.Term = s.current()
	return r, err
}

type serverFeed struct {
	changefeed.Feed
	*server
}

func (f serverFeed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	page, err := f.Feed.Read(ctx, req)
	if err == nil {
		page.Term = f.current()
	}
	return page, err
}

// start runs a host on the server.
func (s *server) start(o *changefeed.Options) (stop func()) {
	s.w.t.Helper()
	p, err := changefeed.New(serverFeed{s.w.feed, s}, serverStore{s.w.store, s}, s.w.got, o)
	if err != nil {
		s.w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			s.w.t.Error(err)
		}
	}
}

func (s *server) records() []changefeed.Record {
	s.w.t.Helper()
	records, err := s.w.store.List(s.w.t.Context(), "")
	if err != nil {
		s.w.t.Fatal(err)
	}
	return records
}

// failOver is the promotion of a standby that has older records, and no changes after an LSN. The
// ETags of the records were never used before.
func (s *server) failOver(term string, older []changefeed.Record, lsn int64) {
	s.w.t.Helper()
	synctest.Wait() // no host is between two requests
	var errs []error
	for _, r := range s.records() {
		errs = append(errs, s.w.store.Delete(s.w.t.Context(), r.ID, r.ETag))
	}
	for _, r := range older {
		_, err := s.w.store.Create(s.w.t.Context(), r)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		s.w.t.Fatal(err)
	}
	s.w.feed.Restore(lsn)
	s.term.Store(term)
}

// A checkpoint in the memory of a host covers changes that the new server does not have, and their
// numbers are used again. The checkpoint that the new server has does not.
func TestFailoverOfFeedAndLeasesContinuesFromTheStoredCheckpoint(t *testing.T) {
	for _, running := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			s := newServer(w, "7:1")
			stop := s.start(&changefeed.Options{Host: "a"})
			w.put(40, 5)
			eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 40 })
			time.Sleep(10 * time.Second) // the checkpoint is stored
			older, history := s.records(), w.leases()[0].History
			w.put(10, 5)
			eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 50 })
			if !running {
				stop()
			}
			s.failOver("7:2", older, 40)
			w.put(20, 5) // with the numbers of the lost ones, and later ones
			if !running {
				stop = s.start(&changefeed.Options{Host: "b"})
			}
			eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 70 })
			time.Sleep(10 * time.Second)
			for _, l := range w.leases() {
				if w.got.count() != 70 || l.Term != "7:2" || l.History == history || l.Health != changefeed.Healthy {
					t.Errorf("lease %+v, want the term of the new server, another history, and no fault; %d deliveries, want 70", l, w.got.count())
				}
			}
			stop()
		})
	}
}

// A lease that was created just before the failover may be missing after it.
func TestLeaseThatWasLostInAFailoverBeginsAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		s := newServer(w, "7:1")
		stop := s.start(&changefeed.Options{Host: "a"})
		w.put(40, 5)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 40 })
		time.Sleep(10 * time.Second)
		lost := w.leases()[0]
		older := slices.DeleteFunc(s.records(), func(r changefeed.Record) bool { return r.ID == lost.ID })
		w.put(10, 5)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 50 })
		s.failOver("7:2", older, 40)
		w.put(20, 5)
		eventually(t, 2*time.Minute, "all that the range has", func() bool { return w.got.count() > 70 })
		if l := w.leases()[0]; l.Epoch != 1 || l.Range != lost.Range {
			t.Errorf("lease %+v, want a new one", l)
		}
		stop()
	})
}

// A position of another server means nothing, even if it is not ahead of this one's feed.
func TestPositionOfAnotherServerHoldsTheRange(t *testing.T) {
	for name, act := range map[string]func(*changefeed.Operator, context.Context, ...string) error{
		"restart": (*changefeed.Operator).Restart, "retry": (*changefeed.Operator).Retry,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				s := newServer(w, "7:1")
				stop := s.start(&changefeed.Options{Host: "a"})
				w.put(40, 5)
				eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 40 })
				time.Sleep(10 * time.Second)
				s.failOver("8:1", s.records(), 40)
				w.put(20, 5)
				time.Sleep(time.Hour)
				if n := w.got.count(); n != 40 {
					t.Fatalf("%d deliveries, want none from another server", n)
				}
				l := w.leases()[0]
				if !l.Foreign() && l.Lost == 0 || !strings.Contains(l.Error, "another server") {
					t.Errorf("lease %+v, want the reason", l)
				}
				if err := act(w.operator(), t.Context()); err != nil {
					t.Fatal(err)
				}
				want := map[string]int{"restart": 40 + 60, "retry": 60}[name]
				eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == want })
				stop()
			})
		})
	}
}

// The leases may be on another server than the feed. Then a failover of either says nothing about
// the other, and the ids of servers and of physical ranges are not compared.
func TestTermsOfUnrelatedServersAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		leases := newServer(w, "8:1")
		p, err := changefeed.New(w.feed, serverStore{w.store, leases}, w.got, &changefeed.Options{Host: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		w.put(40, 5)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 40 })
		w.feed.FailOver(40)
		w.put(20, 5)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 60 })
		for _, l := range w.leases() {
			if l.Epoch != 1 || l.Lost != 0 {
				t.Errorf("lease %+v, want it kept", l)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
