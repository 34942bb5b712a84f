package changefeed

import (
	"context"
	"testing"
	"testing/synctest"
)

// endlessFeed is a feed whose reads last until they are given up.
type endlessFeed struct{ Feed }

func (endlessFeed) Read(ctx context.Context, _ ReadRequest) (*Page, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// startWorker starts a worker of a lease with a request, and returns once it waits for what
// ends its session, or the pause.
func startWorker(t *testing.T, request Request) (*shelf, *workers, Lease) {
	t.Helper()
	store, e := newShelf(t)
	lease := store.keep(t, Lease{
		ID: e.ids.lease(FullRange()), Version: 1, Token: "-FF", Range: FullRange(),
		Owner: "a", Incarnation: "1", Epoch: 1, Expiry: e.opts.Expiry, Request: request,
	})
	e.self, e.feed = lease.ownerKey(), endlessFeed{}
	s := &workers{env: e, byLease: map[string]*worker{}}
	s.start(t.Context(), lease, s.clocks().read())
	synctest.Wait()
	return store, s, lease
}

// A worker that is made to look, and finds that nothing is asked of it, goes on as it was.
func TestAWorkerThatIsAskedNothingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, lease := startWorker(t, Request{})
		w := s.of(lease.ID)
		_, before := w.current()
		w.kick.send()
		synctest.Wait()
		if _, f := w.current(); f == nil || f != before {
			t.Error("the session was ended and another begun")
		}
		w.stop(stopOrder{reason: "drain"})
		s.wait.Wait()
	})
}

// A worker has something in hand while a page of its is not done, not while it only reads.
func TestWhatIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, lease := startWorker(t, Request{})
		w := s.of(lease.ID)
		_, f := w.current()
		if w.inHand() {
			t.Error("a worker that only reads has something in hand")
		}
		p := f.window.add(&Page{Items: make([]Item, 1)})
		if !w.inHand() {
			t.Error("a worker has nothing in hand while a page is not done")
		}
		f.window.finish(p, 1)
		w.stop(stopOrder{reason: "drain"})
		s.wait.Wait()
		if w.inHand() {
			t.Error("a worker that has ended has something in hand")
		}
	})
}

// A worker that hears of a drain's deadline before it hears of the drain, as after a pause of
// the process, releases its lease all the same, also one that an operator paused.
func TestAWorkerThatHearsOfTheDeadlineFirstReleasesItsLease(t *testing.T) {
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, s, lease := startWorker(t, Request{Paused: paused})
			w := s.of(lease.ID)
			w.mu.Lock()
			w.order = stopOrder{given: true, reason: "drain"}
			w.mu.Unlock()
			w.cancel(ErrDraining)
			s.wait.Wait()
			if got, err := readLease(t.Context(), store, lease.ID); err != nil || got.Owner != "" || got.Previous != "a" {
				t.Errorf("paused %t: the lease is %+v, error %v; want it released", paused, got, err)
			}
		})
	}
}
