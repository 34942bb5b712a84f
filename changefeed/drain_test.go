package changefeed

import (
	"testing"
	"testing/synctest"
	"time"
)

// leaving returns a run with one lease beside a host that stays.
func leaving(t *testing.T) (*mapStore, *run) {
	t.Helper()
	store, e := newMapStore(t)
	r := newRun(e)
	r.last.keep(listing{leases: []Lease{{ID: "l", Owner: "b", Incarnation: "2", Expiry: e.opts.Expiry}}})
	r.workers.byLease["own"] = &worker{}
	return store, r
}

// Even if the others poll often now, the host announces if they would slow down before all
// have listed the leases. It works on until they have.
func TestLeavingHostAnnouncesUnlessOthersAlreadyPollOften(t *testing.T) {
	calm := func(*run) {}
	for name, tt := range map[string]struct {
		fast     time.Duration // how long this host still lists often
		set      func(r *run)
		reported bool
	}{
		"calm":               {-time.Minute, calm, true},
		"calm soon":          {5 * time.Second, calm, true},
		"calm later":         {30 * time.Second, calm, false},
		"nothing to give up": {-time.Minute, func(r *run) { clear(r.workers.byLease) }, false},
		"no time":            {-time.Minute, func(r *run) { r.opts.DrainTimeout = -1 }, false},
		"alone":              {-time.Minute, func(r *run) { r.last = kept{} }, false},
		"a spare one": {-time.Minute, func(r *run) {
			r.last = kept{hosts: []heartbeat{{Host: "b", Incarnation: "2", Spare: true}}}
		}, true},
		"was spare itself": {-time.Minute, func(r *run) {
			r.last = kept{hosts: []heartbeat{{Host: "a", Incarnation: r.incarnation, Spare: true}}}
		}, false},
		"the other leaves too": {-time.Minute, func(r *run) {
			r.last = kept{hosts: []heartbeat{{Host: "b", Incarnation: "2", Draining: true}}}
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, r := leaving(t)
			began := r.clock.Now()
			r.interval.fastUntil = began.Add(tt.fast)
			tt.set(r)
			r.announceLeaving(t.Context(), began)
			took, want := time.Since(began), time.Duration(0)
			if tt.reported {
				want = 6 * time.Second // 3/5 of DrainTimeout
			}
			if (store.writes > 0) != tt.reported || took != want {
				t.Errorf("%s: %d records written, %s waited; want announced %t, %s", name, store.writes, took, tt.reported, want)
			}
		})
	}
}

// The record of a dead host may remain for long. A lease that waits for this host would be read by no one.
func TestUnreadRangeIsHandedToALivingSpareHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := leaving(t)
		hosts := []heartbeat{{Host: "b", Incarnation: "2", Spare: true}, {Host: "c", Incarnation: "3", Spare: true}}
		dead, alive := Record{ID: r.ids.host("b", "2"), ETag: "1"}, Record{ID: r.ids.host("c", "3"), ETag: "1"}
		r.lister.etags.observe([]Record{dead, alive}, r.clock.Now())
		time.Sleep(spareExpiries * r.opts.Expiry)
		alive.ETag = "2"
		r.lister.etags.observe([]Record{dead, alive}, r.clock.Now())
		if to := r.otherHost(listing{hosts: hosts}, balanceView{}, r.clock.Now()); to != "c/3" {
			t.Errorf("handed to %q, want the living host", to)
		}
	})
}

// The host does not wait if no other host can be notified, or once its leases are gone.
func TestLeavingHostWaitsOnlyForHostsThatStay(t *testing.T) {
	for name, tt := range map[string]struct {
		lose bool // its announcement
		gone time.Duration
	}{
		"no host can be notified": {lose: true},
		"all leases moved":        {gone: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, r := leaving(t)
			store.lose = tt.lose
			began := r.clock.Now()
			if tt.gone > 0 {
				time.AfterFunc(tt.gone, func() {
					r.workers.mu.Lock()
					clear(r.workers.byLease)
					r.workers.mu.Unlock()
					r.relist.send()
				})
			}
			if r.announceLeaving(t.Context(), began); time.Since(began) != tt.gone {
				t.Errorf("%s: it waited for %s, want %s", name, time.Since(began), tt.gone)
			}
		})
	}
}
