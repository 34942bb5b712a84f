package changefeed

import (
	"testing"
	"testing/synctest"
	"time"
)

// A host that leaves tells the others, also if it looks often itself for a moment more: they
// may be calm before. It need not if all look often for as long as telling them would take.
func TestAHostThatLeavesTellsThoseThatMayBeCalm(t *testing.T) {
	for name, tt := range map[string]struct {
		fast time.Duration // how long this host still looks often
		told bool
	}{
		"calm":       {fast: -time.Minute, told: true},
		"calm soon":  {fast: 5 * time.Second, told: true},
		"calm later": {fast: 30 * time.Second, told: false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, e := newShelf(t)
			r := newRun(e)
			r.last = listing{leases: []Lease{{ID: "l", Owner: "b", Incarnation: "2", Expiry: e.opts.Expiry}}}
			r.workers.byLease["own"] = &worker{}
			now := r.clock.Now()
			r.interval.fastUntil = now.Add(tt.fast)
			if r.announce(t.Context(), now); (store.writes > 0) != tt.told {
				t.Errorf("%s: %d records written, told %t", name, store.writes, tt.told)
			}
		})
	}
}
