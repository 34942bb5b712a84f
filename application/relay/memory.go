package relay

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
)

// Ownership identifies one period of owning a feed range. Use the zero Ownership if the owner
// never changes.
type Ownership struct {
	Lease string // names the range
	Epoch int64  // rises with every change of the owner
	// History names the history of the container. Positions of another history, such as that
	// of a container before it was restored, say nothing about this one's events.
	History string
	// Resumed is true if reading continues from a checkpoint, or has reached the end of the feed before. Events
	// missing then are lost; before, they may have been sent long ago.
	Resumed bool
}

// ownership is the state of an Ownership.
type ownership struct {
	epoch   int64
	history string
	listing int                  // the first listing of closed gates that began during this ownership
	places  map[placeID]Progress // of events that are not done; see memory.recall
}

// placeID identifies an event that cannot be read and has no place of its own.
type placeID struct {
	key, event string
	lsn        int64
}

// memory holds the relay's state of its ranges and their keys.
//
// parked contains every parked key of the ranges, and perhaps keys that are no longer parked.
// That holds because only the owner parks keys, and an ownership sends nothing before the end of
// a listing of closed gates that began after it. All ranges share the listings: while one runs,
// all ranges acquired meanwhile wait for the next one. Each listing replaces the set.
//
// The set contains hashes, 16 bytes a key, because an outage may park millions of keys.
type memory struct {
	seeds [2]maphash.Seed

	mu      sync.Mutex            // guards the fields below and everything they refer to
	leases  map[string]*ownership // current ownership by range
	parked  map[keyHash]struct{}
	since   map[keyHash]struct{}   // keys parked since the running listing began
	begun   int                    // number of listings that began
	loaded  int                    // number of the last listing that succeeded
	running *listing               // nil = none
	recent  map[string]*keyHistory // recently seen keys; see historyOf
	older   map[string]*keyHistory
}

// keyHash has two hashes, because one that is equal for two keys would make a parked key look
// open once the gate of the other is found open.
type keyHash [2]uint64

// listing is one call of ParkedStore.Closed.
type listing struct {
	number int
	ended  chan struct{}
	err    error // valid once ended is closed
	cut    bool  // the context of the caller ended, which says nothing about the store
}

func newMemory() memory {
	return memory{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, leases: make(map[string]*ownership), parked: make(map[keyHash]struct{}),
	}
}

func (m *memory) hash(key string) keyHash {
	return keyHash{maphash.String(m.seeds[0], key), maphash.String(m.seeds[1], key)}
}

// register returns the state of o and whether o is new. It returns once the parked keys of o
// are known, and fails if they cannot be listed.
func (r *Relay) register(ctx context.Context, o Ownership) (now *ownership, first bool, err error) {
	m := &r.memory
	m.mu.Lock()
	now = m.leases[o.Lease]
	if first = now == nil || now.epoch != o.Epoch || now.history != o.History; first { // a store that failed over repeats epochs
		now = &ownership{epoch: o.Epoch, history: o.History, listing: m.begun + 1}
		m.leases[o.Lease] = now
	}
	m.mu.Unlock()
	if r.opts.Parked != nil {
		err = r.waitListing(ctx, now.listing)
	}
	return now, first, err
}

// waitListing returns once a listing with this number or a higher one has succeeded, and calls
// list itself if no other caller does. It fails if such a listing fails.
func (r *Relay) waitListing(ctx context.Context, number int) error {
	m := &r.memory
	for {
		m.mu.Lock()
		if m.loaded >= number {
			m.mu.Unlock()
			return nil
		}
		l, mine := m.running, m.running == nil
		if mine {
			m.begun++
			l = &listing{number: m.begun, ended: make(chan struct{})}
			m.running, m.since = l, make(map[keyHash]struct{})
		}
		m.mu.Unlock()
		if mine {
			r.list(ctx, l)
		}
		select {
		case <-l.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if l.number >= number && l.err != nil && (mine || !l.cut) {
			return &Error{Class: Outage, Reason: "gates_unknown", Err: fmt.Errorf("load gates: %w", l.err)}
		}
	}
}

// list runs l, and ends it even if the store panics.
func (r *Relay) list(ctx context.Context, l *listing) {
	m := &r.memory
	var keys []string
	l.err = errors.New("the listing did not return")
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if l.err == nil {
			for _, key := range keys {
				m.since[m.hash(key)] = struct{}{}
			}
			m.parked, m.loaded = m.since, l.number
		}
		l.cut = ctx.Err() != nil
		m.running, m.since = nil, nil
		close(l.ended)
	}()
	keys, l.err = r.opts.Parked.Closed(ctx)
}

func (m *memory) setParked(key string, parked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.hash(key)
	if !parked {
		delete(m.parked, h)
		return
	}
	m.parked[h] = struct{}{}
	if m.running != nil {
		m.since[h] = struct{}{}
	}
}

// parkedKeys returns the keys that may be parked. They are not pending until parkFollowers finds a gate open.
func (m *memory) parkedKeys(p *page) (keys []*keyState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.parked) == 0 {
		return nil
	}
	for i := range p.keys {
		if _, parked := m.parked[m.hash(p.keys[i].name)]; parked {
			p.keys[i].gated = true
			keys = append(keys, &p.keys[i])
		}
	}
	return keys
}

// recall gives the events of a page the places that a former page of the ownership gave them, when
// their transaction was whole. Otherwise one that is retried without those before it would count as
// the first of its transaction, and a gate would take it for one that is done.
func (m *memory) recall(in *ownership, p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(in.places) == 0 {
		return
	}
	p.eachPlaceless(func(_ *keyState, e *Message) {
		if at, known := in.places[placeID{e.Key, e.ID, e.LSN}]; known {
			p.setPlace(e, at)
		}
	})
}

// remember keeps the places of the events that are not done, for recall.
func (m *memory) remember(in *ownership, p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.eachPlaceless(func(k *keyState, e *Message) {
		id := placeID{e.Key, e.ID, e.LSN}
		if k.parked {
			delete(in.places, id)
			return
		}
		if _, known := in.places[id]; known {
			return
		}
		if in.places == nil {
			in.places = make(map[placeID]Progress)
		}
		at := p.place(e) // copied, because its strings alias a document
		at.Event = strings.Clone(at.Event)
		in.places[placeID{strings.Clone(e.Key), strings.Clone(e.ID), e.LSN}] = at
	})
}

// forget drops the place of an event that is parked.
func (m *memory) forget(in *ownership, e *Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(in.places, placeID{e.Key, e.ID, e.LSN})
}
