package faults

import (
	"encoding/json"
	"slices"
	"strings"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
)

// lease is the part of a lease that tests read.
type lease struct {
	ID    string `json:"id"`
	Token string `json:"LeaseToken"` // only live leases have one
	Owner string `json:"Owner"`
	Feed  struct {
		Range struct {
			Min string `json:"min"`
			Max string `json:"max"`
		} `json:"Range"`
	} `json:"FeedRange"`
}

// leases reads the live leases without the network, ordered by range.
func (s *scenario) leases() []lease {
	s.Helper()
	raw, err := s.Cosmos().Items(world.Database, world.Leases)
	if err != nil {
		s.Fatal(err)
	}
	var list []lease
	for _, r := range raw {
		var l lease
		if json.Unmarshal(r, &l) == nil && l.Token != "" {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b lease) int { return strings.Compare(a.Feed.Range.Min, b.Feed.Range.Min) })
	return list
}

// wantNoOrphans fails the test unless the leases cover the key space, each key once.
func (s *scenario) wantNoOrphans() {
	s.Helper()
	at := ""
	for _, l := range s.leases() {
		if l.Feed.Range.Min != at {
			s.Errorf("a lease ends at %q and the next starts at %q", at, l.Feed.Range.Min)
		}
		at = l.Feed.Range.Max
	}
	if at != "FF" {
		s.Errorf("the leases end at %q, not at the end of the key space", at)
	}
}

// shared returns the owners of all leases, for hosts.
func (s *scenario) shared(hosts []string) *verify.Settled {
	settled := &verify.Settled{Hosts: hosts, Owners: map[string]string{}}
	for _, l := range s.leases() {
		settled.Owners[l.ID] = l.Owner
	}
	return settled
}

// balanced reports whether there are leases and they are balanced over hosts.
func (s *scenario) balanced(hosts []string) bool {
	settled := s.shared(hosts)
	return len(settled.Owners) > 0 && settled.Unbalanced() == ""
}
