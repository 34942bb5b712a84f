package relay

import (
	"cmp"
	"context"
	"strings"
	"sync"
)

// history finds events that are missing from that of their key. It remembers the last
// sequence of the keys seen lately and compares:
//
//   - an event with the one before it: a step of more than one is a gap;
//   - the last sequence stored in an aggregate with the events seen: an aggregate
//     changes in one transaction with its last event, so both are on one page, and if
//     the event is not there it has expired.
//
// What it has forgotten it cannot compare; the inbox of a consumer finds every gap. What was
// seen in an earlier ownership does not count: another owner may have sent what followed.
type history struct {
	mu     sync.Mutex // guards what follows
	recent map[string]*seen
	older  map[string]*seen // recent as it was when it was full; what is used moves back
}

// seen is the last sequence of a key and the number of the ownership in which it was seen.
type seen struct{ sequence, ownership int64 }

// historyLimit is how many keys recent holds.
const historyLimit = 100_000

// last returns the last sequence of key seen in an ownership, 0 if it is not known. mu is
// held.
func (h *history) last(key string, ownership int64) int64 {
	s := cmp.Or(h.recent[key], h.older[key])
	if s == nil || s.ownership != ownership {
		return 0
	}
	return s.sequence
}

// set notes the last sequence seen of key, whose memory is the page's. An assignment to
// a map replaces the key, too, by one that is equal: a key that is there must not be
// assigned to, or the map would hold memory that the next page overwrites. mu is held.
func (h *history) set(key string, now seen) {
	if s, ok := h.recent[key]; ok {
		*s = now
		return
	}
	if h.recent == nil || len(h.recent) >= historyLimit {
		h.older, h.recent = h.recent, make(map[string]*seen)
	}
	h.recent[strings.Clone(key)] = &now
}

// findMissing compares the page with what was seen before and tells what is missing. A
// page that is handled again tells nothing again. number is that of the ownership.
func (r *Relay) findMissing(ctx context.Context, o Ownership, number int64, p *page) {
	if r.opts.Observer.Missing == nil {
		return
	}
	for _, m := range r.history.compare(p, number) {
		m.Lost = o.Resumed || m.First > 0
		r.opts.Observer.Missing(ctx, m)
	}
}

func (h *history) compare(p *page, ownership int64) []Missing {
	h.mu.Lock()
	defer h.mu.Unlock()
	var missing []Missing
	for i := range p.keys {
		k := &p.keys[i]
		k.before = h.last(k.name, ownership)
		last, unread := k.before, int64(0) // events that are there and do not tell their sequence
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
		if k.last = last; last != k.before {
			h.set(k.name, seen{last, ownership})
		}
	}
	for i := range p.aggregates {
		a := &p.aggregates[i]
		last := h.last(a.Key, ownership)
		if a.Sequence <= last {
			continue
		}
		m := Missing{Key: a.Key, Last: a.Sequence}
		if last != 0 {
			m.First = last + 1
		}
		// The last one may be an event of the page whose sequence nobody knows.
		if k, there := p.keyOf[a.Key]; !there || p.keys[k].last != 0 {
			missing = append(missing, m)
		}
		h.set(a.Key, seen{a.Sequence, ownership})
	}
	return missing
}
