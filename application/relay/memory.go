package relay

import (
	"cmp"
	"context"
	"fmt"
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
	// Resumed is true if reading continues from a checkpoint. Events missing after a
	// checkpoint are lost; before the first checkpoint they may have been sent long ago.
	Resumed bool
}

// ownership is the state of an Ownership.
type ownership struct {
	epoch  int64
	loaded bool // the parked keys are loaded
}

// memory holds the relay's state of its ranges and their keys.
//
// parked contains every parked key of the ranges, and perhaps keys that are no longer parked.
// That holds because only the owner parks keys, and a new owner loads them before its first
// page. A key whose gate turns out to be open is removed.
type memory struct {
	mu     sync.Mutex            // guards the fields below and everything they refer to
	leases map[string]*ownership // current ownership by range
	parked map[string]struct{}
	recent map[string]*keyHistory // recently seen keys; see historyOf
	older  map[string]*keyHistory
}

// register returns the state of o and whether o is new. It loads the parked keys first, and
// fails if it cannot.
func (r *Relay) register(ctx context.Context, o Ownership) (now *ownership, first bool, err error) {
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

func (m *memory) parkedKeys(p *page) (keys []*keyState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.keys {
		if _, parked := m.parked[p.keys[i].name]; parked {
			keys = append(keys, &p.keys[i])
		}
	}
	return keys
}

// Progress marks the done events of a key: those with a known sequence up to Sequence and an
// LSN up to LSN were accepted by the broker or skipped. The zero Progress marks none. A low
// sequence alone does not prove that an event is done, because an event written by hand may
// have any sequence.
type Progress struct {
	Sequence int64
	LSN      int64
}

// covers reports whether p marks e as done.
func (p Progress) covers(e *ParkedEvent) bool {
	return 0 < e.Sequence && e.Sequence <= p.Sequence && 0 < e.LSN && e.LSN <= p.LSN
}

// recordDone stores the progress of each key of a page. A gate that is closed later needs it to
// recognise done events in a repeated read, even if the failed event has no sequence.
func (m *memory) recordDone(p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.keys {
		switch k := &p.keys[i]; {
		case k.parked || k.sent == len(k.messages):
			k.history.done = Progress{Sequence: k.history.sequence, LSN: k.messages[len(k.messages)-1].LSN}
		case k.sent > 0:
			last := &k.messages[k.sent-1]
			k.history.done = Progress{Sequence: last.Sequence, LSN: last.LSN}
		}
	}
}

// progress returns the progress of the event's key before the event failed.
func (m *memory) progress(e *Message) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := cmp.Or(m.recent[e.Key], m.older[e.Key]); s != nil && s.done.Sequence > 0 {
		return s.done
	}
	// Events of the same transaction do not count as done, because the feed returns them in
	// any order: one with a lower sequence may still follow.
	if e.Sequence == 0 || e.LSN == 0 {
		return Progress{}
	}
	return Progress{Sequence: e.Sequence - 1, LSN: e.LSN - 1}
}
