package relay

import (
	"cmp"
	"context"
	"strings"
)

// keyHistory is the history of a key within one ownership. It is reset with each ownership,
// because another owner may have sent later events in between.
type keyHistory struct {
	in       *ownership
	sequence int64 // of the last seen event
}

// maxRecentKeys is the maximum size of memory.recent.
const maxRecentKeys = 100_000

// historyOf returns the history of a key. When recent is full it becomes older, and entries in
// use move back to recent; this evicts the keys not used for longest. It clones the key,
// because key aliases a document of the page. mu is held.
func (m *memory) historyOf(key string, in *ownership) *keyHistory {
	s := m.recent[key]
	if s == nil {
		s = cmp.Or(m.older[key], new(keyHistory))
		if m.recent == nil || len(m.recent) >= maxRecentKeys {
			m.older, m.recent = m.recent, make(map[string]*keyHistory)
		}
		m.recent[strings.Clone(key)] = s
	}
	if s.in != in {
		*s = keyHistory{in: in}
	}
	return s
}

// findMissing compares the page with the history of its keys and reports missing events. A
// repeated page reports nothing again.
func (r *Relay) findMissing(ctx context.Context, o Ownership, in *ownership, p *page) {
	for _, m := range r.memory.compare(p, in) {
		m.Key = strings.Clone(m.Key) // it aliases a document, and an observer may keep it
		m.Lost = o.Resumed || m.First > 0
		notify(ctx, r.opts.Observer.Missing, m)
	}
}

// compare finds missing events in two ways:
//
//   - between two events of a key, a step of more than one is a gap;
//   - an aggregate whose last sequence is above that of the last event: both are written in
//     one transaction and are on one page, so the event has expired.
//
// Keys without a history are not compared. The inbox of a consumer finds every gap.
func (m *memory) compare(p *page, in *ownership) (missing []Missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.keys {
		k := &p.keys[i]
		k.history = m.historyOf(k.name, in)
		last, unread := k.history.sequence, int64(0) // unread: events without a known sequence
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
		k.history.sequence = last
	}
	for i := range p.aggregates {
		a := &p.aggregates[i]
		s := m.historyOf(a.Key, in)
		if a.Sequence <= s.sequence {
			continue
		}
		gap := Missing{Key: a.Key, Last: a.Sequence}
		if s.sequence != 0 {
			gap.First = s.sequence + 1
		}
		// The last sequence may be that of an event on the page that cannot be read.
		if _, there := p.keyOf[a.Key]; !there || s.sequence != 0 {
			missing = append(missing, gap)
		}
		s.sequence = a.Sequence
	}
	return missing
}
