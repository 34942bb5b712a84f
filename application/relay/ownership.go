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

// owned is what the relay knows of the ranges that it owns.
//
// parked may name a key that is not, never the other way around: only the owner parks
// keys, and a new owner asks for the parked ones before its first page. A key that turns
// out to be free leaves the set.
type owned struct {
	mu     sync.Mutex            // guards what follows
	leases map[string]*ownership // the present one of each range
	count  int64                 // of ownerships
	parked map[string]struct{}
}

// ownership is what is known of an Ownership.
type ownership struct {
	epoch, number int64 // no other has the number
	loaded        bool  // its parked keys are known
}

// enter notes o. It returns its number and whether it is new, once the keys are known that
// are parked.
func (r *Relay) enter(ctx context.Context, o Ownership) (number int64, first bool, err error) {
	r.owned.mu.Lock()
	now := r.owned.leases[o.Lease]
	if first = now == nil || now.epoch != o.Epoch; first {
		r.owned.count++
		now = &ownership{epoch: o.Epoch, number: r.owned.count}
		r.owned.leases[o.Lease] = now
	}
	loaded := now.loaded
	r.owned.mu.Unlock()
	if loaded || r.opts.Parked == nil {
		return now.number, first, nil
	}
	keys, err := r.opts.Parked.Closed(ctx)
	if err != nil {
		return now.number, first, &Error{Class: Outage, Reason: "gates_unknown", Err: fmt.Errorf("load gates: %w", err)}
	}
	r.owned.mu.Lock()
	defer r.owned.mu.Unlock()
	for _, key := range keys {
		r.owned.parked[key] = struct{}{}
	}
	now.loaded = true
	return now.number, first, nil
}

// setParked notes whether key is parked.
func (o *owned) setParked(key string, parked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if parked {
		o.parked[strings.Clone(key)] = struct{}{}
	} else {
		delete(o.parked, key)
	}
}

// parkedOf returns the keys of p that are parked.
func (o *owned) parkedOf(p *page) (keys []*keyState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range p.keys {
		if _, parked := o.parked[p.keys[i].name]; parked {
			keys = append(keys, &p.keys[i])
		}
	}
	return keys
}
