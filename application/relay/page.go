package relay

import (
	"cmp"
	"slices"
)

// page is the working set of one Handle call: the events of its changes, brought
// into groups by key. Its memory is used again by later calls.
type page struct {
	events  []Message        // decoded events in the order of the changes
	member  []int32          // member[i] is the group of events[i]
	groupOf map[string]int32 // by key
	sizes   []int32          // by group
	sorted  []Message        // events, group by group
	groups  []Group          // what is published; each a part of sorted
	all     []Group          // the same before events that cannot be sent were cut off
	faults  map[int]error    // by Message.Index: events that cannot be sent at all
	keyless []Failure        // faults that name no key
	skipped int
}

// decode reads the events out of changes.
func (p *page) decode(decoder Decoder, changes []Change) {
	for i := range changes {
		c := &changes[i]
		m, isEvent, err := decoder.Decode(c.Raw)
		if err == nil && !isEvent {
			p.skipped++
			continue
		}
		m.Index = i
		if c.LSN != 0 {
			m.LSN = c.LSN
		}
		if err != nil {
			if m.Key == "" {
				p.keyless = append(p.keyless, Failure{Index: i, ID: m.ID, Err: err})
				continue
			}
			if p.faults == nil {
				p.faults = make(map[int]error)
			}
			p.faults[i] = err
		}
		p.add(m)
	}
}

func (p *page) add(m Message) {
	g, known := p.groupOf[m.Key]
	if !known {
		if p.groupOf == nil {
			p.groupOf = make(map[string]int32)
		}
		g = int32(len(p.sizes))
		p.groupOf[m.Key] = g
		p.sizes = append(p.sizes, 0)
	}
	p.sizes[g]++
	p.events = append(p.events, m)
	p.member = append(p.member, g)
}

// arrange brings the events into groups, in the order in which their keys first
// appear, and returns those that have something to send. Events of a key are in
// order of (LSN, sequence); a group ends before the first event that cannot be sent.
func (p *page) arrange() []Group {
	p.sorted = slices.Grow(p.sorted[:0], len(p.events))[:len(p.events)]
	next := int32(0)
	for _, size := range p.sizes {
		p.all = append(p.all, Group{Messages: p.sorted[next : next : next+size]})
		next += size
	}
	for i := range p.events {
		g := &p.all[p.member[i]]
		g.Key = p.events[i].Key
		g.Messages = append(g.Messages, p.events[i])
	}
	for i := range p.all {
		g := &p.all[i]
		if !slices.IsSortedFunc(g.Messages, byPosition) {
			slices.SortStableFunc(g.Messages, byPosition)
		}
		if n := p.sendable(g.Messages); n > 0 {
			p.groups = append(p.groups, Group{Key: g.Key, Messages: g.Messages[:n]})
		}
	}
	return p.groups
}

// sendable returns how many messages stand before the first that cannot be sent.
func (p *page) sendable(msgs []Message) int {
	if len(p.faults) == 0 {
		return len(msgs)
	}
	n := slices.IndexFunc(msgs, func(m Message) bool { return p.faults[m.Index] != nil })
	if n < 0 {
		return len(msgs)
	}
	return n
}

// byPosition orders the messages of one key.
func byPosition(a, b Message) int {
	return cmp.Or(cmp.Compare(a.LSN, b.LSN), cmp.Compare(a.Sequence, b.Sequence))
}

// failures lists the events that were not accepted: those that could not be read,
// those that the publisher reports in failed, and those behind either.
func (p *page) failures(failed []KeyError) []Failure {
	if len(failed) == 0 && len(p.faults) == 0 && len(p.keyless) == 0 {
		return nil
	}
	out := slices.Clone(p.keyless)
	sent := make(map[string]KeyError, len(failed))
	for _, k := range failed {
		sent[p.groups[k.Group].Key] = k
	}
	for _, g := range p.all {
		first, cause := p.sendable(g.Messages), error(nil)
		if k, ok := sent[g.Key]; ok {
			first, cause = k.Sent, k.Err
		} else if first < len(g.Messages) {
			cause = p.faults[g.Messages[first].Index]
		}
		for n := first; n < len(g.Messages); n++ {
			m := &g.Messages[n]
			out = append(out, Failure{Index: m.Index, ID: m.ID, Key: g.Key, Held: n > first, Err: cause})
		}
	}
	slices.SortFunc(out, func(a, b Failure) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// reset forgets everything but the memory.
func (p *page) reset() {
	clear(p.events)
	clear(p.sorted)
	clear(p.groups)
	clear(p.all)
	clear(p.groupOf)
	*p = page{
		events: p.events[:0], member: p.member[:0], groupOf: p.groupOf, sizes: p.sizes[:0],
		sorted: p.sorted[:0], groups: p.groups[:0], all: p.all[:0],
	}
}
