package verify

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// Loss is a report that events of a key are missing. First 0: where the gap begins is
// not known.
type Loss struct {
	Key         string
	First, Last int64
}

// Checkpoint is a position of the change feed that a relay wrote to a lease.
type Checkpoint struct {
	Lease, Owner string
	Min, Max     string // the lease's range of effective partition keys
	LSN          int64  // everything up to it counts as sent
	Accepted     int64  // how many messages the broker had accepted by then
}

// Settled tells how the leases were after the faults ended.
type Settled struct {
	Hosts  []string          // the relays that run, as leases name them
	Owners map[string]string // lease to owner; "" has none
	// Unowned is how long some lease had no living owner, Limit how long that may be.
	Unowned, Limit time.Duration
	// Arrived and Balanced are how long it took until all had arrived and until the
	// leases were shared out evenly.
	Arrived, Balanced time.Duration
}

// place is a place in the history of a key.
type place struct {
	key      string
	sequence int64
}

// reports are the losses that were told of.
type reports struct {
	named map[string][]Loss // by key
	aged  map[place]bool    // expired, and a warning was given
}

// reports are those that count: none where nothing can expire.
func (r Run) reports() reports {
	told := reports{named: make(map[string][]Loss), aged: make(map[place]bool)}
	if !r.Expires {
		return told
	}
	for _, l := range r.Reported {
		told.named[l.Key] = append(told.named[l.Key], l)
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Expired && (r.Warned || len(r.Reported) > 0) {
			told.aged[place{e.Key, e.Sequence}] = true
		}
	}
	return told
}

// cover tells whether the loss of each of the sequences was told of.
func (r reports) cover(key string, first, last int64) bool {
	for n := first; n <= last; n++ {
		if !r.aged[place{key, n}] && !slices.ContainsFunc(r.named[key], func(l Loss) bool { return l.First <= n && n <= l.Last }) {
			return false
		}
	}
	return true
}

// verifyHandled checks what handlers got. A handler may get an event again after a
// crash, never one before its predecessors.
func (r Run) verifyHandled(v *violations) {
	if r.Handled == nil {
		return
	}
	last := make(map[string]int64)
	handled := make(map[string]bool, len(r.Handled))
	reported := r.reports()
	for _, m := range r.Handled {
		handled[m.ID] = true
		want := last[m.Session] + 1
		if m.Sequence > want && !reported.cover(m.Session, want, m.Sequence-1) {
			v.add("I3 consumer: session %s: sequence %d was handled where %d was due", m.Session, m.Sequence, want)
		}
		last[m.Session] = max(last[m.Session], m.Sequence)
	}
	for _, m := range r.Messages {
		if !handled[m.ID] {
			v.add("I2 consumer: message %s of session %s, sequence %d, was never handled", m.ID, m.Session, m.Sequence)
		}
	}
}

// verifyCheckpoints compares each position with what had been accepted when it was
// written.
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
	told := make(map[string]bool)
	for _, c := range r.Checkpoints {
		for i := range events {
			e := &events[i]
			if e.LSN > c.LSN {
				break
			}
			n, arrived := number[e.ID]
			if e.LSN == 0 || e.EPK < c.Min || e.EPK >= c.Max || arrived && n <= c.Accepted || told[e.ID] || r.Parked[e.ID] {
				continue
			}
			if !arrived && r.Expires {
				continue // a loss, judged by I2
			}
			told[e.ID] = true
			v.add("I6 lease %s of %s: position %d written when %d messages were accepted; event %s (key %s, sequence %d, position %d) was message %d",
				c.Lease, c.Owner, c.LSN, c.Accepted, e.ID, e.Key, e.Sequence, e.LSN, n)
		}
	}
}

// verifyPoison checks that what cannot be sent is parked, and nothing else but what
// follows it.
func (r Run) verifyPoison(v *violations, events map[string]Event) {
	for _, l := range r.Reported {
		if !r.Expires {
			v.add("I2 events %d to %d of key %s were reported as lost where nothing can be", l.First, l.Last, l.Key)
		}
	}
	if r.Poison == nil {
		return
	}
	for id := range r.Poison {
		if !r.Parked[id] {
			v.add("I8 document %s cannot be sent and is not parked", id)
		}
	}
	for id := range r.Parked {
		if e, stored := events[id]; !r.Poison[id] && stored {
			v.add("I8 event %s (key %s, sequence %d) is parked, although nothing is wrong with its key", id, e.Key, e.Sequence)
		}
	}
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
