package verify

import (
	"slices"
)

// Loss is a report that events of a key are missing. First 0: where the gap begins is
// not known.
type Loss struct {
	Key         string
	First, Last int64
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
