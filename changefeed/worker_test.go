package changefeed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// endlessFeed is a feed whose reads last until they are cancelled.
type endlessFeed struct{ Feed }

func (endlessFeed) Read(ctx context.Context, _ ReadRequest) (*Page, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// startWorker starts a worker of a lease with a request. It returns once the worker waits
// for the end of its session, or of the pause.
func startWorker(t *testing.T, request Request) (*mapStore, *workers, Lease) {
	t.Helper()
	store, e := newMapStore(t)
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

func TestWorkerContinuesWithoutARequest(t *testing.T) {
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

// A page that is not done counts; a read does not.
func TestWorkerHasPagesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, lease := startWorker(t, Request{})
		w := s.of(lease.ID)
		_, f := w.current()
		if w.inFlight() {
			t.Error("a worker that only reads has pages in flight")
		}
		p := f.window.add(&Page{Items: make([]Item, 1)}, 0, 0, 0)
		if !w.inFlight() {
			t.Error("a worker has no page in flight while one is not done")
		}
		f.window.finish(p, 1)
		w.stop(stopOrder{reason: "drain"})
		s.wait.Wait()
		if w.inFlight() {
			t.Error("a worker that has ended has pages in flight")
		}
	})
}

// The deadline may pass first after a pause of the process. A lease that an operator paused
// is released, too.
func TestWorkerReleasesLeaseIfDeadlinePassesBeforeTheOrder(t *testing.T) {
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

func TestRewindAndRetryResetTheRecord(t *testing.T) {
	l := Lease{
		Continuation: `"9"`, LSN: 9, ChangeTime: 90, Delivered: 12, Ahead: Ahead{LSN: 12, Held: []HeldKey{{LSN: 10, ID: "a", Refusals: 2}}},
		Health: Stopped, Failures: 3, Error: "bad", Failing: time.Unix(1, 0), UnreadFor: time.Hour, Request: Request{Retry: true, Rewind: &RangeToken{Since: time.Unix(5, 0)}},
	}
	applyRequest(&l)
	saved := Lease{Continuation: `"9"`, Request: Request{Rewind: &RangeToken{Continuation: `"3"`}}}
	if applyRequest(&saved); saved.Continuation != `"3"` || !saved.Backlog { // what follows was perhaps sent, and has expired
		t.Errorf("%+v is not in a backlog after a rewind to a saved position", saved)
	}
	if l.Continuation != "" || !l.Since.Equal(time.Unix(5, 0)) || l.LSN != 0 || l.ChangeTime != 0 || l.Delivered != 0 || l.Ahead.LSN != 0 || l.Ahead.Held != nil {
		t.Errorf("%+v still has the previous position", l)
	}
	if !l.Backlog || l.Health != Healthy || l.Failures != 0 || l.Error != "" || !l.Failing.IsZero() || l.UnreadFor != 0 || !l.Request.equal(Request{}) {
		t.Errorf("%+v still has the failure or the request", l)
	}
}
