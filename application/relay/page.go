package relay

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// page is the working set of one Handle call: the events of its changes, grouped by key. Its
// memory is reused by later calls.
type page struct {
	changes    []Change
	history    string           // of the container
	keys       []keyState       // in the order of their first event
	keyOf      map[string]int   // place in keys, by name
	faults     map[int]error    // by Message.Index: events that cannot be sent
	places     map[int]Progress // by Message.Index: of events without a place of their own; see arrange
	keyless    []Failure        // events that cannot be sent and have no key
	aggregates []Message        // key and last sequence of the aggregates among the changes
	resent     int              // events sent again that may have been accepted before

	shard     int         // whose keys are sent; see Relay.publish
	groups    []Group     // of the last send
	groupKeys []*keyState // the key of each group
}

// keyState is the messages of one key on a page and their progress.
type keyState struct {
	name     string
	messages []Message   // in the order of the feed, those of a transaction by sequence
	sendable int         // messages before the first that cannot be sent
	sent     int         // messages accepted by the broker
	gated    bool        // its gate may be closed
	parked   bool        // all of them were parked instead
	accepted int         // messages accepted by the last send
	err      error       // why messages[sent] was not accepted
	blamed   bool        // err is the key's fault; see Failure
	history  *keyHistory // of the key, across pages
	shard    int         // see Options.Shards
}

// pending reports whether the key has messages to send and has not failed.
func (k *keyState) pending() bool { return !k.gated && k.sent < k.sendable && k.err == nil }

// decode decodes a document. An event that has no id gets one derived from the document, the
// same on every attempt.
func decode(decoder Decoder, c *Change) (m Message, isEvent bool, err error) {
	m, isEvent, err = decoder.Decode(c.Raw)
	m.LSN = cmp.Or(c.LSN, m.LSN)
	if err != nil && m.ID == "" {
		sum := sha256.Sum256(c.Raw)
		m.ID = fmt.Sprintf("no-id-%d-%x", m.LSN, sum[:8])
	}
	return m, isEvent, err
}

// read decodes changes and groups their events by key. Call arrange next.
func (p *page) read(decoder Decoder, o Ownership, changes []Change) {
	p.changes, p.history = changes, o.History
	for i := range changes {
		m, isEvent, err := decode(decoder, &changes[i])
		m.Index = i
		switch {
		case err != nil && m.Key == "":
			p.keyless = append(p.keyless, Failure{Index: i, ID: m.ID, Err: err})
		case err != nil:
			if p.faults == nil {
				p.faults = make(map[int]error)
			}
			p.faults[i] = err
			p.add(m)
		case isEvent:
			p.add(m)
		case m.Key != "":
			p.aggregates = append(p.aggregates, m)
		}
	}
}

// arrange brings the events of each key into order, and finds those that can be sent.
//
// An event that cannot be read may have neither ordinal nor sequence. It follows the event that the
// feed returned before it in its transaction, as long as all of them are on the page. A retry has
// only those that are not done, so memory.recall must have set its place as of then.
func (p *page) arrange() {
	for i := range p.keys {
		k := &p.keys[i]
		p.sort(k.messages)
		for k.sendable < len(k.messages) && p.faults[k.messages[k.sendable].Index] == nil {
			k.sendable++
		}
	}
}

func (p *page) add(m Message) {
	i, known := p.keyOf[m.Key]
	if !known {
		if p.keyOf == nil {
			p.keyOf = make(map[string]int)
		}
		i = len(p.keys)
		p.keyOf[m.Key] = i
		p.keys = slices.Grow(p.keys, 1)[:i+1]
		p.keys[i] = keyState{name: m.Key, messages: p.keys[i].messages[:0]} // reuses the memory of an earlier page
	}
	p.keys[i].messages = append(p.keys[i].messages, m)
}

// sort sorts the messages of each transaction by their places, because the feed returns them in
// any order. Messages with the same LSN share a transaction. Transactions stay in the order of
// the feed: their LSNs are not compared, because after a merge the LSNs of the two sides need
// not be comparable.
func (p *page) sort(msgs []Message) {
	for len(msgs) > 0 {
		n := 1
		for n < len(msgs) && msgs[n].LSN == msgs[0].LSN && msgs[0].LSN != 0 {
			m := &msgs[n]
			if _, recalled := p.places[m.Index]; !recalled && p.placeless(m) {
				at, before := p.place(m), p.place(&msgs[n-1])
				at.Ordinal, at.Sequence, at.Event = before.Ordinal, before.Sequence, before.Event+" "+m.ID
				p.setPlace(m, at)
			}
			n++
		}
		if n > 1 {
			slices.SortStableFunc(msgs[:n], func(a, b Message) int {
				x, y := p.place(&a), p.place(&b)
				return x.inTransaction(&y)
			})
		}
		msgs = msgs[n:]
	}
}

// place returns the place of an event of the page.
func (p *page) place(m *Message) Progress {
	if at, known := p.places[m.Index]; known {
		return at
	}
	return Progress{
		History: p.history, LSN: m.LSN, Ordinal: m.Ordinal, Sequence: m.Sequence, Event: m.ID, At: p.changes[m.Index].Timestamp.UTC(),
	}
}

// placeless reports whether an event cannot be read and has no place of its own.
func (p *page) placeless(m *Message) bool {
	return p.faults[m.Index] != nil && m.Ordinal < 1 && m.Sequence < 1
}

func (p *page) eachPlaceless(do func(*keyState, *Message)) {
	if len(p.faults) == 0 {
		return
	}
	for i := range p.keys {
		for n := range p.keys[i].messages {
			if m := &p.keys[i].messages[n]; p.placeless(m) {
				do(&p.keys[i], m)
			}
		}
	}
}

func (p *page) setPlace(m *Message, at Progress) {
	if p.places == nil {
		p.places = make(map[int]Progress)
	}
	p.places[m.Index] = at
}

// reported is the failure of the first failed event of a key, with its place for Park. The events
// of the key before that place were accepted or parked.
type reported struct {
	error
	place Progress
	in    *ownership
}

func (e *reported) Unwrap() error { return e.error }

// failAll fails every event of the page with err.
func (p *page) failAll(err error) {
	for i := range p.keyless {
		p.keyless[i].Err = err
	}
	for i := range p.keys {
		p.keys[i].err = err
	}
}

// failures lists the events that were neither accepted nor parked, in the order of the changes.
// Of each key the first one failed, and the others wait for it.
func (p *page) failures(in *ownership) []Failure {
	out := slices.Clone(p.keyless)
	for i := range p.keys {
		k := &p.keys[i]
		if k.parked || k.sent == len(k.messages) {
			continue
		}
		cause := cmp.Or(k.err, p.faults[k.messages[k.sent].Index])
		place := p.place(&k.messages[k.sent])
		place.Event = strings.Clone(place.Event) // it aliases a document
		cause = &reported{cause, place, in}
		for n := k.sent; n < len(k.messages); n++ {
			m := &k.messages[n]
			out = append(out, Failure{Index: m.Index, ID: m.ID, Key: k.name, Held: n > k.sent, Blamed: k.blamed, Err: cause})
		}
	}
	slices.SortFunc(out, func(a, b Failure) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// oldest returns the commit time of the oldest event of the page; zero if there is none.
func (p *page) oldest() (oldest time.Time) {
	for i := range p.keys {
		for n := range p.keys[i].messages {
			if at := p.changes[p.keys[i].messages[n].Index].Timestamp; oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	return oldest
}

// reset clears the page and keeps its memory for reuse.
func (p *page) reset() {
	for i := range p.keys {
		clear(p.keys[i].messages)
		p.keys[i] = keyState{messages: p.keys[i].messages[:0]}
	}
	clear(p.groups[:cap(p.groups)])
	clear(p.keyOf)
	clear(p.aggregates)
	*p = page{keys: p.keys[:0], keyOf: p.keyOf, groups: p.groups[:0], groupKeys: p.groupKeys[:0], aggregates: p.aggregates[:0]}
}
