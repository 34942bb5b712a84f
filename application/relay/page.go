package relay

import (
	"cmp"
	"slices"
)

// page is the working set of one Handle call: the events of its changes, brought
// together by key. Its memory is used again by later calls.
type page struct {
	changes    []Change
	events     []Message        // decoded events in the order of the changes
	member     []int32          // member[i] is the key of events[i], an index into keys
	keyOf      map[string]int32 // by name
	sorted     []Message        // events, key by key
	keys       []keyState
	faults     map[int]error // by Message.Index: events that cannot be sent at all
	keyless    []Failure     // faults that name no key
	aggregates []Message     // key and last sequence of the aggregates among the changes
	skipped    int           // changes that are no events
	resent     int           // events sent again that an earlier try may have sent
	first      bool          // the first page of a tenure
	turn       int           // the key that goes ahead next during an outage, an index into keys

	groups []Group // of the round being published
	at     []int32 // at[i] is the key of groups[i]
}

// keyState is what is to be sent of one key, and how far that has come.
type keyState struct {
	name     string
	messages []Message // in the order of the feed, those of a transaction by sequence
	sendable int       // messages before the first that cannot be sent
	sent     int       // messages accepted by the broker
	parked   bool      // all of them went to the parked events instead
	err      error     // why messages[sent] was not accepted
	untried  bool      // it was not even tried: another key's failure stopped the round
}

func (k *keyState) pending() bool { return !k.parked && k.sent < k.sendable }

// read decodes changes and brings their events together by key, keys in the order in
// which they first appear.
func (p *page) read(decoder Decoder, changes []Change) {
	p.changes = changes
	for i := range changes {
		p.decode(decoder, i)
	}
	p.sorted = slices.Grow(p.sorted[:0], len(p.events))[:len(p.events)]
	next := 0
	for i := range p.keys {
		k := &p.keys[i]
		k.messages = p.sorted[next : next : next+k.sendable] // add has counted them there
		next += k.sendable
	}
	for i := range p.events {
		k := &p.keys[p.member[i]]
		k.messages = append(k.messages, p.events[i])
	}
	for i := range p.keys {
		k := &p.keys[i]
		p.sort(k.messages)
		k.sendable = p.sendable(k.messages)
	}
}

func (p *page) decode(decoder Decoder, i int) {
	c := &p.changes[i]
	m, isEvent, err := decoder.Decode(c.Raw)
	m.Index = i
	if c.LSN != 0 {
		m.LSN = c.LSN
	}
	if err == nil && !isEvent {
		p.skipped++
		if m.Key != "" && m.Sequence > 0 {
			p.aggregates = append(p.aggregates, m)
		}
		return
	}
	if err != nil {
		if m.Key == "" {
			p.keyless = append(p.keyless, Failure{Index: i, ID: m.ID, Err: err})
			return
		}
		if p.faults == nil {
			p.faults = make(map[int]error)
		}
		p.faults[i] = err
	}
	p.add(m)
}

func (p *page) add(m Message) {
	g, known := p.keyOf[m.Key]
	if !known {
		if p.keyOf == nil {
			p.keyOf = make(map[string]int32)
		}
		g = int32(len(p.keys))
		p.keyOf[m.Key] = g
		p.keys = append(p.keys, keyState{name: m.Key})
	}
	p.keys[g].sendable++
	p.events = append(p.events, m)
	p.member = append(p.member, g)
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

// sort brings the messages of one key into their order, which is that of the feed: LSNs
// tell which of them share a transaction, but not which came first, since those of the
// two sides of a merge need not be comparable. Only within a transaction does the feed
// promise no order. A message that cannot be read may not tell its sequence: it stays
// where the feed has it, between those before and behind it.
func (p *page) sort(msgs []Message) {
	for len(msgs) > 0 {
		n := 1
		for n < len(msgs) && msgs[n].LSN == msgs[0].LSN {
			n++
		}
		p.sortTransaction(msgs[:n])
		msgs = msgs[n:]
	}
}

func (p *page) sortTransaction(msgs []Message) {
	for len(msgs) > 1 {
		n := p.sendable(msgs)
		if !slices.IsSortedFunc(msgs[:n], bySequence) {
			slices.SortStableFunc(msgs[:n], bySequence)
		}
		msgs = msgs[min(n+1, len(msgs)):]
	}
}

// bySequence orders the messages of one key and transaction.
func bySequence(a, b Message) int { return cmp.Compare(a.Sequence, b.Sequence) }

// gather fills groups with what is still to be sent of the keys that want tells.
func (p *page) gather(want func(k *keyState) bool) []Group {
	clear(p.groups)
	p.groups, p.at = p.groups[:0], p.at[:0]
	for i := range p.keys {
		if k := &p.keys[i]; k.pending() && want(k) {
			p.groups = append(p.groups, Group{Key: k.name, Messages: k.messages[k.sent:k.sendable]})
			if k.err != nil && !k.untried {
				p.resent += k.sendable - k.sent
			}
			p.at = append(p.at, int32(i))
		}
	}
	return p.groups
}

// settle notes the result of publishing groups. It returns how many messages were
// accepted.
func (p *page) settle(failed []KeyError) int {
	accepted := 0
	for i := range p.groups {
		k := &p.keys[p.at[i]]
		sent, err, untried := k.sendable-k.sent, error(nil), false
		if len(failed) > 0 && failed[0].Group == i {
			sent, err, untried = failed[0].Sent, failed[0].Err, failed[0].Untried
			failed = failed[1:]
		}
		k.sent += sent
		k.err, k.untried = err, untried
		accepted += sent
	}
	return accepted
}

// failures lists the events that were neither accepted nor parked, in the order of the
// changes. Of each key the first of them is the one that failed: whatever stands before a
// failed change counts as done, also if the feed has a transaction in another order.
func (p *page) failures() []Failure {
	out := slices.Clone(p.keyless)
	for i := range p.keys {
		k := &p.keys[i]
		if k.parked || k.sent == len(k.messages) {
			continue
		}
		cause := k.err
		if cause == nil {
			cause = p.faults[k.messages[k.sent].Index]
		}
		failed := k.messages[k.sent].Index
		for n := k.sent; n < len(k.messages); n++ {
			failed = min(failed, k.messages[n].Index)
		}
		for n := k.sent; n < len(k.messages); n++ {
			m := &k.messages[n]
			out = append(out, Failure{Index: m.Index, ID: m.ID, Key: k.name, Held: m.Index != failed, Err: cause})
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
	clear(p.keys)
	clear(p.keyOf)
	clear(p.aggregates)
	*p = page{
		events: p.events[:0], member: p.member[:0], keyOf: p.keyOf, sorted: p.sorted[:0], keys: p.keys[:0],
		groups: p.groups[:0], at: p.at[:0], aggregates: p.aggregates[:0],
	}
}
