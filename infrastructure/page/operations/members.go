package operations

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// membersView lists the relays, their leases, and recent takeovers.
type membersView struct {
	Read    Source
	Members []member
	Leases  []rangeRow
	Page    pageOf
	Moves   []Move
	Free    int
}

type member struct {
	Name         string
	Leases       int
	State, Words string
	Heard        time.Time
	Behind       int64
	Known        bool // the lag of all its ranges
}

const maxMembers = 200

func (s *Operations) members(r *http.Request) (any, error) {
	p := s.reader.Latest(r.Context())
	v := membersView{Read: p.Ranges, Moves: p.Moves[:min(len(p.Moves), pageSize)]}
	byName := map[string]*member{}
	silent := map[string]time.Duration{}
	for _, one := range p.Snapshot.Ranges {
		if one.Owner == "" {
			v.Free++
			continue
		}
		m, ok := byName[one.Owner]
		if !ok {
			m = &member{Name: one.Owner, State: "good", Words: "alive", Known: p.Ranges.Current()}
			byName[one.Owner] = m
		}
		m.Leases++
		m.Behind += one.Lag.Transactions
		m.Known = m.Known && one.Lag.Known
		if one.Timestamp.After(m.Heard) {
			m.Heard, silent[one.Owner] = one.Timestamp, one.Silent
		}
	}
	for name, d := range silent {
		if d > 0 { // silence of the lease it renewed last
			byName[name].State, byName[name].Words = "bad", "silent"
		}
	}
	for _, h := range p.Hosts {
		m, ok := byName[h.Name]
		if !ok {
			m = &member{Name: h.Name, State: "good", Words: "waiting for ranges", Known: p.Ranges.Current()}
			byName[h.Name] = m
		}
		switch {
		case p.Snapshot.At.Sub(h.Timestamp) > 10*max(h.Expiry, time.Second) && m.Leases == 0 && !h.Spare:
			m.State, m.Words = "", "gone"
		case h.Draining:
			m.State, m.Words = "busy", "draining"
		case h.Spare && m.Leases == 0:
			m.Words = "spare: no range left for it"
		}
		if h.Timestamp.After(m.Heard) {
			m.Heard = h.Timestamp
		}
	}
	for _, m := range byName {
		m.State = p.Ranges.State(m.State)
		v.Members = append(v.Members, *m)
	}
	slices.SortFunc(v.Members, func(a, b member) int { return cmp.Or(cmp.Compare(b.Leases, a.Leases), cmp.Compare(a.Name, b.Name)) })
	v.Members = v.Members[:min(len(v.Members), maxMembers)]
	from, to := paged(r.URL.Query(), len(p.Snapshot.Ranges), r.URL.Path, &v.Page)
	for _, one := range p.Snapshot.Ranges[from:to] {
		v.Leases = append(v.Leases, newRangeRow(one, p))
	}
	return v, nil
}
