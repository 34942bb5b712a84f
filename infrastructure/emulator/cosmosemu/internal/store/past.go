package store

import (
	"slices"
	"sync"
	"time"
)

// Moment is a past state of the store. Release it exactly once. A nil Moment is the present.
type Moment struct {
	snapshot *snapshot
	millis   int64               // Unix time of the commit that created it
	lsns     map[*counter]uint64 // lower bounds: the snapshot may contain later commits
}

// Release releases the moment.
func (m *Moment) Release() {
	if m != nil {
		m.snapshot.release()
	}
}

// LSN returns a lower bound of the range's last log sequence number at the moment, 0 for a
// range that was created later.
func (m *Moment) LSN(r *Range) uint64 {
	if m == nil {
		return r.LSN()
	}
	return m.lsns[r.counter]
}

// of returns the moment, or nil if the range was created later. A replica of a new range holds
// all changes of its parents. In an older state they are incomplete: that of a merged range
// could have a late change of one parent without an earlier one of the other, and a position
// after the former would pass the latter.
func (m *Moment) of(r *Range) *Moment {
	if m != nil {
		if _, there := m.lsns[r.counter]; !there {
			return nil
		}
	}
	return m
}

// past keeps recent states for stale reads. It is off unless Options.Past is set.
type past struct {
	reach time.Duration

	mu      sync.Mutex // guards moments
	moments []*Moment  // oldest first; the first may be older than reach
}

// maxMoments limits the number of states. Above it every second one is dropped.
const maxMoments = 512

// remember keeps the current state. It is called after each commit and after each change of a
// container.
func (s *Store) remember() {
	if s.past.reach <= 0 {
		return
	}
	m := &Moment{millis: s.now().UnixMilli(), lsns: make(map[*counter]uint64)}
	for _, db := range s.Databases() {
		for _, c := range s.Containers(db) {
			for _, r := range c.Topology().Ranges {
				m.lsns[r.counter] = r.LSN() // read before the snapshot, which may contain later commits
			}
		}
	}
	if v := s.view(); v.snapshot != nil {
		m.snapshot = v.snapshot // already acquired
	} else {
		m.snapshot = &snapshot{Snapshot: s.db.NewSnapshot(), refs: 1}
	}
	s.past.add(m)
}

func (p *past) add(m *Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moments = append(p.moments, m)
	// The first moment may be older than reach, because it is the state at that time.
	for len(p.moments) > 1 && p.moments[1].millis <= m.millis-p.reach.Milliseconds() {
		p.moments[0].Release()
		p.moments = p.moments[1:]
	}
	if len(p.moments) <= maxMoments {
		return
	}
	kept := p.moments[:0]
	for i, old := range p.moments {
		if i%2 == 0 {
			kept = append(kept, old)
		} else {
			old.Release()
		}
	}
	p.moments = kept
}

// Past returns the state at the time now - lag, or that at which the last range of the container
// began if it is later; see Moment.of. It is nil, the present, if nothing has changed since.
func (s *Store) Past(c *Container, lag time.Duration) *Moment {
	ranges := c.Topology().Ranges
	s.past.mu.Lock()
	defer s.past.mu.Unlock()
	want := s.now().Add(-lag).UnixMilli()
	at := len(s.past.moments) - 1
	for i := at; i >= 0 && !slices.ContainsFunc(ranges, func(r Range) bool { return s.past.moments[i].of(&r) == nil }); i-- {
		if at = i; s.past.moments[i].millis <= want {
			break
		}
	}
	if at == len(s.past.moments)-1 { // the present is the same state
		return nil
	}
	m := s.past.moments[at]
	m.snapshot.acquire()
	return m
}

func (p *past) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.moments {
		m.Release()
	}
	p.moments = nil
}

// viewAt returns the state to read from.
func (s *Store) viewAt(m *Moment) view {
	if m == nil {
		return s.view()
	}
	m.snapshot.acquire()
	return view{Reader: m.snapshot.Snapshot, snapshot: m.snapshot}
}
