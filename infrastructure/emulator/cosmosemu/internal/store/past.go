package store

import (
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

// LSN returns a lower bound of the range's last log sequence number at the moment. For a
// range that was created later it is the lowest LSN of its parents.
func (m *Moment) LSN(r *Range) uint64 {
	if m == nil {
		return r.LSN()
	}
	return m.count(r.counter)
}

func (m *Moment) count(c *counter) uint64 {
	if lsn, there := m.lsns[c]; there || len(c.parents) == 0 {
		return lsn
	}
	lsn := m.count(c.parents[0])
	for _, p := range c.parents[1:] {
		lsn = min(lsn, m.count(p))
	}
	return lsn
}

// past keeps recent states for stale reads. It is off unless Options.Past is set.
type past struct {
	reach time.Duration

	mu      sync.Mutex // guards moments
	moments []*Moment  // oldest first; the first may be older than reach
}

// maxMoments limits the number of states. Above it every second one is dropped.
const maxMoments = 512

// remember keeps the current state. It is called after each commit.
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

// Past returns the state at the time now - lag; nil if nothing has changed since.
func (s *Store) Past(lag time.Duration) *Moment {
	s.past.mu.Lock()
	defer s.past.mu.Unlock()
	want := s.now().Add(-lag).UnixMilli()
	for i := len(s.past.moments) - 1; i >= 0; i-- {
		if m := s.past.moments[i]; m.millis <= want || i == 0 {
			if i == len(s.past.moments)-1 { // the present is the same state
				return nil
			}
			m.snapshot.acquire()
			return m
		}
	}
	return nil
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
