package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

func (s *sim) injectFaults(ctx context.Context) error {
	if err := wait(ctx, 2*time.Second); err != nil {
		return err
	}
	for end := time.Now().Add(s.config.Length); time.Now().Before(end); {
		if err := wait(ctx, time.Duration(s.rng.IntN(4000)+100)*time.Millisecond); err != nil {
			return err
		}
		if err := s.injectOne(); err != nil {
			return err
		}
	}
	return nil
}

// injectOne injects one random fault, or ends some.
func (s *sim) injectOne() error {
	switch n := s.rng.IntN(20); {
	case n < 3:
		if len(s.hosts) < s.config.MaxHosts {
			s.report.Struck["joins"]++
			return s.join()
		}
	case n < 5:
		if h := s.pick(); h != nil && len(s.hosts) > 1 {
			s.report.Struck["leaves"]++
			h.end()
			s.remove(h)
		}
	case n < 8:
		if h := s.pick(); h != nil {
			s.report.Struck["crashes"]++
			h.crash()
			s.remove(h)
			if len(s.hosts) == 0 {
				return s.join()
			}
		}
	case n < 11:
		s.freeze()
	case n < 13:
		s.splitOrMerge()
	case n < 16:
		s.store.set(s.randomRates())
		s.report.Struck["storms"]++
	case n < 17:
		rates := s.randomRates()
		rates.silent = max(0, s.rng.Float64()-0.5) * 0.4
		s.feed.set(rates)
		s.report.Struck["storms"]++
	case n < 18:
		s.store.set(faultRates{})
		s.feed.set(faultRates{latency: 20 * time.Millisecond})
	case n < 19:
		s.handlers.set(faultRates{fail: s.rng.Float64() * 0.3, latency: time.Duration(s.rng.IntN(40)+1) * time.Millisecond})
	default:
		if h := s.pick(); h != nil {
			h.setWall(time.Duration(s.rng.IntN(1200)-600) * time.Second)
		}
	}
	return nil
}

// randomRates returns rates with one to three kinds of faults.
func (s *sim) randomRates() faultRates {
	var w faultRates
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
	s.report.Struck["stops"]++
	if suspend {
		s.report.Struck["suspensions"]++
	}
	h.stop(suspend)
	time.AfterFunc(d, h.wake)
}

func (s *sim) splitOrMerge() {
	if !s.config.Splits {
		return
	}
	epk := s.backend.EPK(fmt.Sprintf("key-%d", s.rng.IntN(s.config.Keys)))
	if s.rng.IntN(3) == 0 {
		s.report.Struck["merges"]++
		s.backend.Merge(epk)
		return
	}
	if s.report.Struck["splits"] < 12 {
		s.report.Struck["splits"]++
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
}

// settle ends all faults and checks V1 and V5.
func (s *sim) settle(ctx context.Context) error {
	s.store.set(faultRates{})
	s.feed.set(faultRates{})
	s.handlers.set(faultRates{})
	s.stuck.Store(false)
	for _, h := range s.hosts {
		h.wake()
	}
	if len(s.hosts) == 0 {
		if err := s.join(); err != nil {
			return err
		}
	}
	if err := s.resume(ctx); err != nil {
		return err
	}
	o := &s.config.Options
	began := time.Now()
	limit := time.Duration(float64(o.Expiry)*(1+2*s.config.Drift)) + o.Acquire*5/4 + time.Second
	if s.config.Foreign {
		limit += foreignExpiry // of a foreign host that crashed just before
	}
	free := map[string]time.Time{} // since when a lease has had no live owner
	err := poll(ctx, func() bool {
		leases, before := s.live(), free
		free = map[string]time.Time{} // a lease created by a later split counts from its creation
		for _, l := range leases {
			if slices.ContainsFunc(s.hosts, func(h *host) bool { return h.name == l.owner() }) {
				continue
			}
			free[l.ID] = cmp.Or(before[l.ID], time.Now())
			if time.Since(free[l.ID]) > limit {
				s.verifier.fault("V5 lease %s has no owner %s after the faults ended; owners: %v", l.ID, time.Since(began), s.owners())
				return true
			}
		}
		return len(leases) > 0 && len(free) == 0
	})
	s.report.Owned = time.Since(began)
	late := func() bool { return time.Since(began) > limit+2*time.Minute }
	if err == nil {
		err = poll(ctx, func() bool { return s.verifier.left() == 0 || late() })
	}
	if left := s.verifier.left(); err == nil && left > 0 {
		s.verifier.fault("V1 %d changes are not delivered %s after the faults ended", left, time.Since(began))
	}
	if err == nil {
		err = poll(ctx, func() bool { return s.balanced() || late() })
	}
	if err == nil && !s.balanced() {
		s.verifier.fault("V5 leases are not balanced %s after the faults ended: %v", time.Since(began), s.owners())
	}
	s.report.Balanced = time.Since(began)
	return err
}

func poll(ctx context.Context, done func() bool) error {
	for !done() {
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// live lists the live leases in their current state, which no reader of the store can know.
func (s *sim) live() []lease {
	var live []lease
	for _, r := range s.history.list("", time.Now()) {
		if l, err := decodeLease(r); err == nil && l.LeaseToken != "" { // only live leases have one
			live = append(live, l)
		}
	}
	return live
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
		counts[l.owner()]++
	}
	return counts
}
