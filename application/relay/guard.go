package relay

import (
	"context"
	"strings"
	"sync"
)

// guard finds events that are missing from the history of their key. It remembers the
// last sequence of the keys seen lately and compares:
//
//   - an event with the one before it: a step of more than one is a gap;
//   - the last sequence stored in an aggregate with the events seen: an aggregate
//     changes in one transaction with its last event, so both are on one page, and if
//     the event is not there it has expired.
//
// What it forgets, or what a new owner has not seen, it cannot compare; the inbox of a
// consumer finds every gap. What was seen in an earlier tenure does not count: another
// owner may have sent what followed.
type guard struct {
	limit int // keys in each generation; negative: the guard is off

	mu     sync.Mutex // guards the fields below
	recent map[string]*seen
	older  map[string]*seen // the generation before; what is used moves to recent
}

// seen is the last sequence of a key and the tenure in which it was seen.
type seen struct{ sequence, tenure int64 }

// last returns the last sequence of key seen in a tenure, 0 if it is not known. mu is
// held.
func (g *guard) last(key string, tenure int64) int64 {
	s, ok := g.recent[key]
	if !ok {
		s, ok = g.older[key]
	}
	if !ok || s.tenure != tenure {
		return 0
	}
	return s.sequence
}

// set notes the last sequence seen of key, whose memory is the page's. An assignment to
// a map replaces the key, too, by one that is equal: a key that is there must not be
// assigned to, or the map would hold memory that the next page overwrites. mu is held.
func (g *guard) set(key string, now seen) {
	if s, ok := g.recent[key]; ok {
		*s = now
		return
	}
	if g.recent == nil || len(g.recent) >= g.limit {
		g.older, g.recent = g.recent, make(map[string]*seen)
	}
	g.recent[strings.Clone(key)] = &now
}

// watch compares the page with what was seen before and tells what is missing. A page
// that is handled again tells nothing again. number is the tenure's.
func (r *Relay) watch(ctx context.Context, t Tenure, number int64, p *page) {
	if r.guard.limit < 0 || r.opts.Hooks.Missing == nil {
		return
	}
	for _, m := range r.guard.compare(p, number) {
		m.Lost = t.Resumed || m.First > 0
		r.opts.Hooks.Missing(ctx, m)
	}
}

func (g *guard) compare(p *page, tenure int64) []Missing {
	g.mu.Lock()
	defer g.mu.Unlock()
	var missing []Missing
	var blind map[string]bool // keys whose last event is there, with a sequence nobody knows
	for i := range p.keys {
		k := &p.keys[i]
		last := g.last(k.name, tenure)
		was, unread := last, int64(0) // events that are there and do not tell their sequence
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
		switch {
		case last != 0:
			last += unread
		case unread > 0:
			if blind == nil {
				blind = make(map[string]bool)
			}
			blind[k.name] = true
		}
		if last != was {
			g.set(k.name, seen{last, tenure})
		}
	}
	for i := range p.aggregates {
		a := &p.aggregates[i]
		last := g.last(a.Key, tenure)
		if a.Sequence <= last {
			continue
		}
		m := Missing{Key: a.Key, Last: a.Sequence}
		if last != 0 {
			m.First = last + 1
		}
		if !blind[a.Key] {
			missing = append(missing, m)
		}
		g.set(a.Key, seen{a.Sequence, tenure})
	}
	return missing
}
