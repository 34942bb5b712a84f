package faults

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F9: one of four relays is started, stopped or killed every two seconds. Each version of a lease is
// replaced at most once, and ten seconds after the last change the leases are balanced.
func TestRelaysComeAndGo(t *testing.T) {
	const full = 150 // changes: five minutes
	runScenario(t, testkit.Result{
		Fault: "F9", Name: "one of four relays started, stopped or killed every 2 s", Seed: 9, Of: full,
		Note: "lease expiry 3 s; every write of a lease is conditional, each ETag accepted once; recovery is the time until the leases are shared out evenly",
	}, world.Topology{APIs: 1, Relays: -1, Consumers: 1, Partitions: 6}, func(s *scenario) {
		s.StartLoad(world.LoadOptions{Writers: 3, Pace: 600 * time.Millisecond})
		writes := &leaseWrites{accepted: map[string]int{}}
		slots, number := make([]*relayProcess, 4), 0
		start := func(i int) {
			number++
			slots[i] = s.startRelay(fmt.Sprintf("relay-%d.%d", i, number), writes.seen)
		}
		for i := range slots {
			start(i)
		}
		s.Sleep(10 * time.Second)
		for range max(4, testkit.Count(s, full)) {
			s.struck.Add(1)
			switch i := s.pick(len(slots)); {
			case slots[i] == nil:
				start(i)
			case s.chance(0.5):
				slots[i].stop()
				slots[i] = nil
			default:
				slots[i].kill()
				slots[i] = nil
			}
			s.Sleep(2 * time.Second)
		}
		for i := range slots {
			if slots[i] == nil {
				start(i)
			}
		}
		calm, hosts := time.Now(), names(slots)
		if !s.Eventually(10*time.Second, func() bool { return s.balanced(hosts) }) {
			s.Errorf("after 10 s: %s", s.shared(hosts).Unbalanced())
		}
		s.result.Recovery = time.Since(calm).Seconds()

		run := s.Settle()
		balance := s.shared(hosts)
		balance.Arrived = time.Duration(s.result.Recovery * float64(time.Second))
		run.Settled = balance
		s.verify(run)
		s.wantNoOrphans()
		writes.judge(s)
	})
}

// leaseWrites counts the answers to writes of leases.
type leaseWrites struct {
	mu            sync.Mutex     // guards the fields below
	accepted      map[string]int // by lease and the ETag that was replaced
	refused       int
	unconditional []string
}

func (l *leaseWrites) seen(r *http.Request, status int) {
	if !strings.Contains(r.URL.Path, "/colls/"+world.Leases+"/docs/") || r.Method == http.MethodGet {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	etag := r.Header.Get("If-Match")
	switch {
	case etag == "":
		l.unconditional = append(l.unconditional, r.Method+" "+path.Base(r.URL.Path))
	case status < 300:
		l.accepted[path.Base(r.URL.Path)+" "+etag]++
	case status == http.StatusPreconditionFailed:
		l.refused++
	}
}

func (l *leaseWrites) judge(s *scenario) {
	s.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Logf("%d writes of leases accepted, %d refused", len(l.accepted), l.refused)
	for version, n := range l.accepted {
		if n > 1 {
			s.Errorf("%d writes were accepted for one version of a lease: %s", n, version)
		}
	}
	if len(l.accepted) == 0 {
		s.Error("no write of a lease was accepted")
	}
	for _, w := range l.unconditional {
		s.Errorf("a lease was written without an ETag: %s", w)
	}
}
