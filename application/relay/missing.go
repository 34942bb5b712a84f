package relay

import (
	"cmp"
	"context"
	"strings"
)

// seen is how far a key has come in an ownership. What was seen in an earlier one does not
// count: another owner may have sent what followed.
type seen struct {
	in       *ownership
	sequence int64    // the last one that was seen
	done     Progress // that of the last event that was accepted or parked
}

// historyLimit is how many keys memory.recent holds.
const historyLimit = 100_000

// remember returns what is known of a key, whose name is in memory of the page's. When
// recent is full it becomes older; what is used of that moves back. mu is held.
func (m *memory) remember(key string, in *ownership) *seen {
	s := m.recent[key]
	if s == nil {
		s = cmp.Or(m.older[key], new(seen))
		if m.recent == nil || len(m.recent) >= historyLimit {
			m.older, m.recent = m.recent, make(map[string]*seen)
		}
		m.recent[strings.Clone(key)] = s
	}
	if s.in != in {
		*s = seen{in: in}
	}
	return s
}

// findMissing compares the page with what was seen before and tells what is missing. A
// page that is handled again tells nothing again.
func (r *Relay) findMissing(ctx context.Context, o Ownership, in *ownership, p *page) {
	for _, m := range r.memory.compare(p, in) {
		m.Lost = o.Resumed || m.First > 0
		tell(ctx, r.opts.Observer.Missing, m)
	}
}

// compare finds events that are missing from the history of their key:
//
//   - an event is compared with the one before it: a step of more than one is a gap;
//   - the last sequence stored in an aggregate with the events seen: an aggregate
//     changes in one transaction with its last event, so both are on one page, and if
//     the event is not there it has expired.
//
// What was forgotten cannot be compared; the inbox of a consumer finds every gap.
func (m *memory) compare(p *page, in *ownership) (missing []Missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.keys {
		k := &p.keys[i]
		k.seen = m.remember(k.name, in)
		last, unread := k.seen.sequence, int64(0) // events that are there and do not tell their sequence
		for n := range k.messages {
			sequence := k.messages[n].Sequence
			if sequence < 1 {
				unread++
				continue
			}
			if last != 0 && sequence > last+1+unread {
				missing = append(missing, Missing{Key: k.name, First: last + 1, Last: sequence - 1})
			}
			last, unread = max(last, sequence), 0
		}
		if last != 0 {
			last += unread
		}
		k.seen.sequence = last
	}
	for i := range p.aggregates {
		a := &p.aggregates[i]
		s := m.remember(a.Key, in)
		if a.Sequence <= s.sequence {
			continue
		}
		gap := Missing{Key: a.Key, Last: a.Sequence}
		if s.sequence != 0 {
			gap.First = s.sequence + 1
		}
		// The last one may be an event of the page whose sequence nobody knows.
		if _, there := p.keyOf[a.Key]; !there || s.sequence != 0 {
			missing = append(missing, gap)
		}
		s.sequence = a.Sequence
	}
	return missing
}
