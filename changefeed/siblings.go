package changefeed

import (
	"cmp"
	"sync"
)

// Siblings are the processors of one process that read several containers, such as those of several
// kinds of aggregates. Pass one value to all of them (Options.Siblings), with one Options.Host or none, and make
// them with New in the same order on every host. Each set of leases is shared evenly, give or take a lease. With Siblings the
// sum of all sets is so, too. Without them the hosts that start first keep all leases of sets that are
// smaller than the fleet.
//
//	set 1   4 leases  ───▶  A 2, B 1, C 1   the remainder goes to the hosts that have the most already
//	set 2   1 lease   ───▶  B 1             ... to those that are due the fewest of the sets before
//	set 3   1 lease   ───▶  C 1
//
// What a host is due of a set depends only on the sets before it, so that two sets cannot wait for
// each other. Each process computes it from its own listings; where two differ, the ETags decide. Processes
// with other sets may not agree: then a lease moves between them, at most once a minute. A set that a process
// cannot list for Options.Expiry counts for nothing there, because what hosts are due of it may have changed by then.
//
// The zero value is ready. It is safe for concurrent use, and must not be copied.
type Siblings struct {
	mu   sync.Mutex // guards the fields below
	due  []map[string]int
	host string // see name
}

// name returns the default name of the host, the first one given. All sets have the same one, because what the
// host is due of them is added up by its name.
func (s *Siblings) name(host string) string {
	if s == nil {
		return host
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = cmp.Or(s.host, host)
	return s.host
}

// join adds a set and returns its place.
func (s *Siblings) join() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = append(s.due, nil)
	return len(s.due) - 1
}

// note records how many leases of a set each host is due; nil for a set that is not
// processed, or whose leases are not known.
func (s *Siblings) note(place int, due map[hostKey]int) {
	if s == nil {
		return
	}
	names := make(map[string]int, len(due))
	for h, n := range due {
		names[h.name()] += n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[place] = names
}

// before returns how many leases of the sets before a place each host is due, by its name.
func (s *Siblings) before(place int) map[string]int {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := map[string]int{}
	for _, due := range s.due[:place] {
		for name, n := range due {
			sum[name] += n
		}
	}
	return sum
}
