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

// A worker that hears of a drain's deadline before it hears of the drain, as after a pause of
// the process, releases its lease all the same, also one that an operator paused.
func TestAWorkerThatHearsOfTheDeadlineFirstReleasesItsLease(t *testing.T) {
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, e := newShelf(t)
			lease := store.keep(t, Lease{
				ID: e.ids.lease(FullRange()), Version: 1, Token: "-FF", Range: FullRange(),
				Owner: "a", Incarnation: "1", Epoch: 1, Expiry: e.opts.Expiry, Request: Request{Paused: paused},
			})
			e.self, e.feed = lease.ownerKey(), endlessFeed{}
			s := &workers{env: e, byLease: map[string]*worker{}}
			s.start(t.Context(), lease, s.clocks().read())
			synctest.Wait() // the worker waits for what ends its session, or the pause
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
