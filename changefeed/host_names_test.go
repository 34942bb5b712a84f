package changefeed_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// Two processes with one name are two hosts: both work, their leases are distinct, and both
// report the other.
func TestTwoHostsWithOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		var duplicates atomic.Int32
		o := &changefeed.Options{Observer: &changefeed.Observer{DuplicateHost: func(e changefeed.DuplicateHost) { duplicates.Add(1) }}}
		a := w.start("same", nil, o)
		b := w.start("same", nil, o)
		incarnations := func() map[string]int {
			counts := map[string]int{}
			for _, l := range w.leases() {
				counts[l.Incarnation]++
			}
			return counts
		}
		eventually(t, 10*time.Second, "shared", func() bool {
			c := incarnations()
			if len(c) != 2 {
				return false
			}
			for _, n := range c {
				if n != 2 {
					return false
				}
			}
			return true
		})
		w.put(200, 20)
		eventually(t, time.Minute, "both noticed", func() bool { return duplicates.Load() == 2 })
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() >= 200 })
		if n := w.got.count(); n != 200 {
			t.Errorf("%d deliveries, want 200", n)
		}
		a.stop()
		b.stop()
	})
}

// A host that crashed and restarts under its name does not wait for others, and does not
// take its former leases before they expire.
func TestRestartUnderTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		a := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "a owns all", func() bool { return w.owners()["a"] == 4 })
		time.Sleep(time.Minute)
		before := w.leases()[0]
		a.crash()
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			DuplicateHost: func(e changefeed.DuplicateHost) { t.Errorf("the dead host is reported: %+v", e) },
		}})
		took := eventually(t, 27*time.Second, "a's successor owns all", func() bool {
			for _, l := range w.leases() {
				if l.Incarnation == before.Incarnation || l.Owner != "a" {
					return false
				}
			}
			return true
		})
		if took < 15*time.Second {
			t.Errorf("after %s: the former process could still be running", took)
		}
	})
}
