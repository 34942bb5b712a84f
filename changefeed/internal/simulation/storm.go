package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// handlerWeather is how handlers behave.
type handlerWeather struct {
	mu   sync.Mutex // guards what follows
	rng  *rand.Rand
	fail float64
	slow time.Duration
}

func (w *handlerWeather) set(fail float64, slow time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail, w.slow = fail, slow
}

// handlerFault is the item at which the next call fails; n if it does not.
func (s *sim) handlerFault(n int) int {
	w := &s.handler
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == 0 || w.rng.Float64() >= w.fail {
		return n
	}
	return w.rng.IntN(n)
}

// work is how long sending one document takes.
func (s *sim) work() time.Duration {
	w := &s.handler
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slow == 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(w.slow)))
}

// storm makes things go wrong for the configured time.
func (s *sim) storm(ctx context.Context) error {
	if err := wait(ctx, 2*time.Second); err != nil {
		return err
	}
	for end := time.Now().Add(s.config.Length); time.Now().Before(end); {
		if err := wait(ctx, time.Duration(s.rng.IntN(4000)+100)*time.Millisecond); err != nil {
			return err
		}
		if err := s.strike(); err != nil {
			return err
		}
	}
	return nil
}

// strike is one thing that goes wrong, or right.
func (s *sim) strike() error {
	switch n := s.rng.IntN(20); {
	case n < 3:
		if len(s.hosts) < s.config.MaxHosts {
			s.report.Joins++
			return s.join()
		}
	case n < 5:
		if h := s.pick(); h != nil && len(s.hosts) > 1 {
			s.report.Leaves++
			h.end()
			s.remove(h)
		}
	case n < 8:
		if h := s.pick(); h != nil {
			s.report.Crashes++
			h.crash()
			s.remove(h)
			if len(s.hosts) == 0 {
				return s.join()
			}
		}
	case n < 11:
		s.freeze()
	case n < 13:
		s.turn()
	case n < 16:
		s.store.set(s.bad())
		s.report.Storms++
	case n < 17:
		s.feed.set(s.bad())
		s.report.Storms++
	case n < 18:
		s.store.set(climate{})
		s.feed.set(climate{latency: 20 * time.Millisecond})
	case n < 19:
		s.handler.set(s.rng.Float64()*0.3, time.Duration(s.rng.IntN(40)+1)*time.Millisecond)
	default:
		if h := s.pick(); h != nil {
			h.setWall(time.Duration(s.rng.IntN(1200)-600) * time.Second)
		}
	}
	return nil
}

// bad is bad weather.
func (s *sim) bad() climate {
	var w climate
	for range 1 + s.rng.IntN(3) {
		p := s.rng.Float64() * 0.4
		switch s.rng.IntN(5) {
		case 0:
			w.throttle = p
		case 1:
			w.fail = p
		case 2:
			w.lose = p
		case 3:
			w.old, w.oldest = p*2, time.Duration(s.rng.IntN(5000)+1)*time.Millisecond
		case 4:
			w.latency = time.Duration(s.rng.IntN(3000)+1) * time.Millisecond
		}
	}
	return w
}

// freeze stops a host for up to three times the expiry.
func (s *sim) freeze() {
	h := s.pick()
	if h == nil || !s.config.Stops {
		return
	}
	suspend := s.config.Suspends && s.rng.IntN(2) == 0
	d := time.Duration(s.rng.Float64() * 3 * float64(s.config.Options.Expiry))
	s.report.Stops++
	if suspend {
		s.report.Suspensions++
	}
	h.stop(suspend)
	time.AfterFunc(d, h.wake)
}

// turn splits or merges a range.
func (s *sim) turn() {
	if !s.config.Splits {
		return
	}
	epk := s.backend.EPK(fmt.Sprintf("key-%d", s.rng.IntN(s.config.Keys)))
	if s.rng.IntN(3) == 0 {
		s.report.Merges++
		s.backend.Merge(epk)
		return
	}
	if s.report.Splits < 12 {
		s.report.Splits++
		s.backend.Split(epk)
	}
}

func (s *sim) pick() *host {
	if len(s.hosts) == 0 {
		return nil
	}
	return s.hosts[s.rng.IntN(len(s.hosts))]
}

func (s *sim) remove(h *host) {
	s.hosts = slices.DeleteFunc(s.hosts, func(o *host) bool { return o == h })
	s.gone = append(s.gone, h)
}

// settle ends all faults and checks V1 and V5.
func (s *sim) settle(ctx context.Context) error {
	s.store.set(climate{})
	s.feed.set(climate{})
	s.handler.set(0, 0)
	for _, h := range s.hosts {
		h.wake()
	}
	if len(s.hosts) == 0 {
		if err := s.join(); err != nil {
			return err
		}
	}
	o := &s.config.Options
	began := time.Now()
	limit := time.Duration(float64(o.Expiry)*(1+2*s.config.Drift)) + o.Acquire*5/4 + time.Second
	if s.config.Foreign {
		limit += foreignExpiry // of one that crashed just before
	}
	free := map[string]time.Time{} // since when a lease is seen without a live owner
	for s.unowned(free) {
		if id := overdue(free, limit); id != "" {
			s.verifier.fault("V5 lease %s has no owner %s after the faults ended; owners: %v", id, time.Since(began), s.owners())
			break
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	s.report.Owned = time.Since(began)
	for s.verifier.left() > 0 {
		if time.Since(began) > limit+2*time.Minute {
			s.verifier.fault("V1 %d changes are not delivered %s after the faults ended", s.verifier.left(), time.Since(began))
			break
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	for !s.balanced() {
		if time.Since(began) > limit+2*time.Minute {
			s.verifier.fault("V5 leases are not balanced %s after the faults ended: %v", time.Since(began), s.owners())
			break
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	s.report.Balanced = time.Since(began)
	return nil
}

// lease is what the verifier needs of one.
type lease struct {
	ID         string
	LeaseToken string // only live leases have one
	Owner      string
}

// live lists live leases as they are, which no reader of the store can know.
func (s *sim) live() []lease {
	var live []lease
	for _, r := range s.history.list("", time.Now()) {
		var l lease
		if json.Unmarshal(r.Body, &l) == nil && l.LeaseToken != "" {
			live = append(live, l)
		}
	}
	return live
}

// unowned notes the leases no live host owns and reports whether there are any.
// A lease that a split makes later counts from then on.
func (s *sim) unowned(free map[string]time.Time) bool {
	alive := map[string]bool{}
	for _, h := range s.hosts {
		alive[h.name] = true
	}
	leases := s.live()
	for _, l := range leases {
		switch since := free[l.ID]; {
		case alive[l.Owner]:
			delete(free, l.ID)
		case since.IsZero():
			free[l.ID] = time.Now()
		}
	}
	for id := range free {
		if !slices.ContainsFunc(leases, func(l lease) bool { return l.ID == id }) {
			delete(free, id)
		}
	}
	return len(leases) == 0 || len(free) > 0
}

// overdue is a lease that has been without owner for too long, or "".
func overdue(free map[string]time.Time, limit time.Duration) string {
	for id, since := range free {
		if time.Since(since) > limit {
			return id
		}
	}
	return ""
}

func (s *sim) balanced() bool {
	counts := s.owners()
	low, high := 1<<30, 0
	for _, h := range s.hosts {
		low, high = min(low, counts[h.name]), max(high, counts[h.name])
	}
	return high-low <= 1
}

func (s *sim) owners() map[string]int {
	counts := map[string]int{}
	for _, l := range s.live() {
		counts[l.Owner]++
	}
	return counts
}
