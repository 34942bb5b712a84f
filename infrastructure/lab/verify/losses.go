package verify

import "slices"

// Loss is a report that events of a key are missing. First is 0 if the start of the gap is
// unknown.
type Loss struct {
	Key         string
	First, Last int64
}

// place is a position in the history of a key.
type place struct {
	key      string
	sequence int64
}

// reports has the reported losses.
type reports struct {
	named map[string][]Loss // by key
	aged  map[place]bool    // expired after a warning
}

// reports returns the valid reports: none if events cannot expire.
func (r Run) reports() reports {
	valid := reports{named: make(map[string][]Loss), aged: make(map[place]bool)}
	if !r.Expires {
		return valid
	}
	for _, l := range r.Reported {
		valid.named[l.Key] = append(valid.named[l.Key], l)
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Expired && r.Warned {
			valid.aged[place{e.Key, e.Sequence}] = true
		}
	}
	return valid
}

// cover reports whether the loss of each of the sequences was reported.
func (r reports) cover(key string, first, last int64) bool {
	for n := first; n <= last; n++ {
		if !r.aged[place{key, n}] && !slices.ContainsFunc(r.named[key], func(l Loss) bool { return l.First <= n && n <= l.Last }) {
			return false
		}
	}
	return true
}

// verifyHandled checks the messages that handlers received. A handler may receive an event
// again after a crash unless r.Once, but never before its predecessors, apart from skipped ones.
func (r Run) verifyHandled(v *violations) {
	if r.Handled == nil && !r.Consumed {
		return
	}
	skipped := make(map[place]bool, len(r.Skipped))
	for _, m := range r.Messages {
		if r.Skipped[m.ID] {
			skipped[place{m.Session, m.Sequence}] = true
		}
	}
	last := make(map[string]int64)
	handled := make(map[string]bool, len(r.Handled))
	reported := r.reports()
	for _, m := range r.Handled {
		if r.Once && handled[m.ID] {
			v.add("I4 consumer: message %s of session %s, sequence %d, was handled twice", m.ID, m.Session, m.Sequence)
		}
		handled[m.ID] = true
		due := last[m.Session] + 1
		for due < m.Sequence && (skipped[place{m.Session, due}] || reported.cover(m.Session, due, due)) {
			due++
		}
		if m.Sequence > due {
			v.add("I3 consumer: session %s: sequence %d was handled where %d was due", m.Session, m.Sequence, due)
		}
		last[m.Session] = max(last[m.Session], m.Sequence)
	}
	for _, m := range r.Messages {
		if !handled[m.ID] && !r.Skipped[m.ID] {
			v.add("I2 consumer: message %s of session %s, sequence %d, was never handled", m.ID, m.Session, m.Sequence)
		}
	}
}

// verifyPoison checks that exactly the poison events and their successors are parked.
func (r Run) verifyPoison(v *violations, events map[string]Event) {
	for _, l := range r.Reported {
		if !r.Expires {
			v.add("I2 events %d to %d of key %s were reported as lost although events do not expire", l.First, l.Last, l.Key)
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
