package relay

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
)

// Ownership is one ownership of a feed range. The zero Ownership stands for one that never
// changes.
type Ownership struct {
	Lease string // names the range
	Epoch int64  // rises with every change of the owner
	// Resumed says that the range is read on from a checkpoint. Events that are missing
	// behind a checkpoint are lost; before the first one they may have been sent long ago.
	Resumed bool
}

// ownership is what is known of an Ownership.
type ownership struct {
	epoch  int64
	loaded bool // its parked keys are known
}

// memory is what the relay knows of its ranges and their keys.
//
// parked may name a key that is not, never the other way around: only the owner parks
// keys, and a new owner asks for the parked ones before its first page. A key that turns
// out to be free leaves the set.
type memory struct {
	mu     sync.Mutex            // guards what follows, and what it leads to
	leases map[string]*ownership // the present one of each range
	parked map[string]struct{}
	recent map[string]*seen // keys whose events came lately; see remember
	older  map[string]*seen
}

// enter notes o. It returns it and whether it is new, once the keys are known that are
// parked.
func (r *Relay) enter(ctx context.Context, o Ownership) (now *ownership, first bool, err error) {
	r.memory.mu.Lock()
	now = r.memory.leases[o.Lease]
	if first = now == nil || now.epoch != o.Epoch; first {
		now = &ownership{epoch: o.Epoch, loaded: r.opts.Parked == nil}
		r.memory.leases[o.Lease] = now
	}
	loaded := now.loaded
	r.memory.mu.Unlock()
	if loaded {
		return now, first, nil
	}
	keys, err := r.opts.Parked.Closed(ctx)
	if err != nil {
		return now, first, &Error{Class: Outage, Reason: "gates_unknown", Err: fmt.Errorf("load gates: %w", err)}
	}
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	for _, key := range keys {
		r.memory.parked[key] = struct{}{}
	}
	now.loaded = true
	return now, first, nil
}

func (m *memory) setParked(key string, parked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if parked {
		m.parked[strings.Clone(key)] = struct{}{}
	} else {
		delete(m.parked, key)
	}
}

func (m *memory) parkedOf(p *page) (keys []*keyState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.keys {
		if _, parked := m.parked[p.keys[i].name]; parked {
			keys = append(keys, &p.keys[i])
		}
	}
	return keys
}

// Progress is how far a key has come: each of its events that has a known sequence up to
// Sequence, and was committed up to LSN, has been accepted by the broker or left out. The
// zero Progress says nothing. Both are needed: that a sequence is low does not show that the
// event was seen before, since one that was written by hand may have any.
type Progress struct {
	Sequence int64
	LSN      int64
}

// covers reports whether e is done.
func (p Progress) covers(e *ParkedEvent) bool {
	return 0 < e.Sequence && e.Sequence <= p.Sequence && 0 < e.LSN && e.LSN <= p.LSN
}

// note takes the result of a page into account. A gate that is closed then knows what is
// not to be parked when the feed shows it again, also if the event that failed does not
// tell its sequence.
func (m *memory) note(p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.keys {
		switch k := &p.keys[i]; {
		case k.parked || k.sent == len(k.messages):
			k.seen.done = Progress{Sequence: k.seen.sequence, LSN: k.messages[len(k.messages)-1].LSN}
		case k.sent > 0:
			last := &k.messages[k.sent-1]
			k.seen.done = Progress{Sequence: last.Sequence, LSN: last.LSN}
		}
	}
}

// progress returns how far the key of an event had come when the event failed.
func (m *memory) progress(e *Message) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := cmp.Or(m.recent[e.Key], m.older[e.Key]); s != nil && s.done.Sequence > 0 {
		return s.done
	}
	// The other events of its transaction are left out: the feed shows them in any order,
	// so one with a lower sequence may still be to come.
	if e.Sequence == 0 || e.LSN == 0 {
		return Progress{}
	}
	return Progress{Sequence: e.Sequence - 1, LSN: e.LSN - 1}
}
