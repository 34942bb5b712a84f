package changefeed

import (
	"slices"
	"testing"
	"time"
)

// A host that leaves is due nothing, also while its leases show that it lives.
func TestAHostThatLeavesIsDueNothing(t *testing.T) {
	m := &membership{
		env:   &env{self: "b/2", opts: Options{Host: "b", Expiry: 20 * time.Second, Acquire: 10 * time.Second}},
		etags: &etagHistory{}, workers: &workers{},
	}
	seen := listing{
		hosts:  []heartbeat{{Host: "a", Incarnation: "1", Draining: true}},
		leases: []Lease{{ID: "l", Owner: "a", Incarnation: "1", Expiry: 20 * time.Second}},
	}
	v := m.balanceView(seen, tiling{}, time.Unix(100, 0))
	if !slices.Equal(v.hosts, []hostKey{"b/2"}) || !slices.Equal(v.leaving, []hostKey{"a/1"}) {
		t.Errorf("hosts %v, leaving %v; want b alone, and a leaving", v.hosts, v.leaving)
	}
}
