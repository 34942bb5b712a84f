package verify

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// Settled is the state of the leases after the faults ended.
type Settled struct {
	Hosts  []string          // the running relays, by their names in leases
	Owners map[string]string // owner by lease; "" for none
	// Unowned is the longest time without a running owner of a lease, Limit the time allowed.
	Unowned, Limit time.Duration
	// Arrived, Handled and Balanced are the times until all events had arrived, until consumers had
	// handled all of them, and until the leases were balanced.
	Arrived, Handled, Balanced time.Duration
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

// Checkpoint is a position of the change feed that a relay wrote to a lease.
type Checkpoint struct {
	Feed         string // the change feed, as in Event
	Lease, Owner string
	Min, Max     string // the lease's range of effective partition keys
	LSN          int64  // everything up to it counts as sent
	Accepted     int64  // number of messages that the broker had accepted then
}

// verifyCheckpoints compares each position with the messages accepted when it was written.
func (r Run) verifyCheckpoints(v *violations) {
	if len(r.Checkpoints) == 0 {
		return
	}
	number := make(map[string]int64, len(r.Messages)) // of a message, from 1
	for i, m := range r.Messages {
		if _, again := number[m.ID]; !again {
			number[m.ID] = int64(i) + 1
		}
	}
	events := slices.Clone(r.Events)
	sort.Slice(events, func(i, j int) bool { return events[i].LSN < events[j].LSN })
	reported := make(map[string]bool)
	for at, c := range r.Checkpoints {
		for i := range events {
			e := &events[i]
			if e.LSN > c.LSN {
				break
			}
			n, arrived := number[e.ID]
			if e.LSN == 0 || e.Feed != c.Feed || e.EPK < c.Min || e.EPK >= c.Max || arrived && n <= c.Accepted || reported[e.ID] {
				continue
			}
			if !arrived && r.Expires {
				continue // a loss, which I2 checks
			}
			if before, timed := r.SetAside[e.ID]; timed && before <= at || !timed && r.Parked[e.ID] {
				continue
			}
			reported[e.ID] = true
			v.add("I6 lease %s of %s: position %d written when %d messages were accepted; event %s (key %s, sequence %d, position %d) was message %d",
				c.Lease, c.Owner, c.LSN, c.Accepted, e.ID, e.Key, e.Sequence, e.LSN, n)
		}
	}
}
