package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settled tells how the leases were after the faults ended.
type Settled struct {
	Hosts  []string          // the relays that run, as leases name them
	Owners map[string]string // lease to owner; "" has none
	// Unowned is how long some lease had no living owner, Limit how long that may be.
	Unowned, Limit time.Duration
	// Arrived and Balanced are how long it took until all had arrived and until the
	// leases were shared out evenly.
	Arrived, Balanced time.Duration
	// Others are those of other change feeds, which have leases and relays of their own.
	Others []*Settled
}

func (s *Settled) verify(v *violations) {
	if s == nil {
		return
	}
	if s.Unowned > s.Limit {
		v.add("I7 a lease had no living owner for %s, at most %s are allowed; owners %v, relays %v", s.Unowned, s.Limit, s.Owners, s.Hosts)
	}
	if text := s.Unbalanced(); text != "" {
		v.add("I7 %s after %s", text, s.Balanced)
	}
	for _, other := range s.Others {
		other.verify(v)
	}
}

// Unbalanced says in which way the leases are not shared out evenly, "" if they are.
func (s *Settled) Unbalanced() string {
	if len(s.Hosts) == 0 {
		return ""
	}
	count := make(map[string]int, len(s.Hosts))
	for _, h := range s.Hosts {
		count[h] = 0
	}
	for lease, owner := range s.Owners {
		if _, lives := count[owner]; !lives {
			return fmt.Sprintf("the lease %s belongs to %q, which does not run", lease, owner)
		}
		count[owner]++
	}
	least, most := len(s.Owners), 0
	for _, n := range count {
		least, most = min(least, n), max(most, n)
	}
	if most-least > 1 {
		var list []string
		for h, n := range count {
			list = append(list, fmt.Sprintf("%s %d", h, n))
		}
		slices.Sort(list)
		return "the leases are not shared out evenly: " + strings.Join(list, ", ")
	}
	return ""
}
