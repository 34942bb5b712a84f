package relay

import (
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

// setParked notes whether key is parked.
func (m *memory) setParked(key string, parked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if parked {
		m.parked[strings.Clone(key)] = struct{}{}
	} else {
		delete(m.parked, key)
	}
}

// parkedOf returns the keys of p that are parked.
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
