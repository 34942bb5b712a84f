package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settled is the state of the leases after the faults ended.
type Settled struct {
	Hosts  []string          // the running relays, by their names in leases
	Owners map[string]string // owner by lease; "" for none
	// Unowned is the longest time without a running owner of a lease, Limit the time allowed.
	Unowned, Limit time.Duration
	// Arrived and Balanced are the times until all events had arrived and until the leases
	// were balanced.
	Arrived, Balanced time.Duration
	// Others has the state of other change feeds, which have their own leases and relays.
	Others []*Settled
}

func (s *Settled) verify(v *violations) {
	if s == nil {
		return
	}
	if s.Unowned > s.Limit {
		v.add("I7 a lease had no running owner for %s, allowed are %s; owners %v, relays %v", s.Unowned, s.Limit, s.Owners, s.Hosts)
	}
	if text := s.Unbalanced(); text != "" {
		v.add("I7 %s after %s", text, s.Balanced)
	}
	for _, other := range s.Others {
		other.verify(v)
	}
}

// Unbalanced describes how the leases are not balanced; "" if they are.
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
		return "the leases are not balanced: " + strings.Join(list, ", ")
	}
	return ""
}
