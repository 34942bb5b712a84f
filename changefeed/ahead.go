package changefeed

import (
	"cmp"
	"slices"
)

// past is the work of former sessions after the checkpoint, as the record had it when this
// session began. Its zero value is none. Guarded by flow.mu.
type past struct {
	Ahead
	from   map[uint64]int64   // by the hash of a held key: the LSN of its first change not done
	firsts map[int64][]string // ids of those changes, by LSN
	rest   int64              // the last LSN that it says something about
	passed uint64             // the page with which the reader got past rest; 0 before
}

func newPast(a Ahead, manual bool) past {
	p := past{Ahead: a, from: map[uint64]int64{}, firsts: map[int64][]string{}}
	if manual { // its checkpoint alone counts
		p.LSN = 0
	}
	p.rest = p.LSN
	for _, h := range a.Held {
		if lsn, known := p.from[h.Key]; !known || h.LSN < lsn {
			p.from[h.Key] = h.LSN
		}
		if h.ID != "" {
			p.firsts[h.LSN] = append(p.firsts[h.LSN], h.ID)
		}
		p.rest = max(p.rest, h.LSN)
	}
	return p
}

// skip reports whether a former session has done an item, which is the next one in feed
// order. It relies on LSNs that rise, as a continuation does, and on an unchanged
// Options.Key. If it finds one of them wrong, the rest is delivered again. Called with mu.
func (f *flow) skip(item *Item) bool {
	if item.LSN < f.high {
		f.unordered, f.past.LSN = true, 0
	}
	f.high = max(f.high, item.LSN)
	if item.LSN > f.past.LSN || item.LSN <= 0 { // without an LSN its place is unknown
		return false
	}
	if from, held := f.past.from[hashOf(f.keyOf(item))]; held && item.LSN >= from {
		return false
	}
	if slices.Contains(f.past.firsts[item.LSN], documentID(item)) { // it was held under another key
		f.past.LSN = 0
		return false
	}
	return true
}

// passPast notes that the reader got past the work of former sessions with the last page.
func (f *flow) passPast() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.past.passed == 0 {
		f.past.passed = f.window.last()
	}
}

// ahead implements session: what is done ahead of the checkpoint, by this session and, until
// all of that is read again, by former ones.
func (f *flow) ahead(stored int64) Ahead {
	f.mu.Lock()
	defer f.mu.Unlock()
	lsn, seq, done := f.window.settled()
	rereading := f.past.rest > 0 && (f.past.passed == 0 || seq < f.past.passed)
	switch {
	case f.unordered || f.manual():
		lsn = 0
	case rereading:
		lsn = f.past.LSN
	case !done: // nothing would be redelivered
		lsn = 0
	}
	var held []HeldKey
	for _, h := range f.held {
		if e := h.entry(); e.LSN <= lsn || e.Refusals > 0 {
			held = append(held, e)
		}
	}
	if rereading {
		for _, e := range f.past.Held {
			if !slices.ContainsFunc(held, func(h HeldKey) bool { return h.Key == e.Key && h.LSN == e.LSN }) {
				held = append(held, e)
			}
		}
	}
	slices.SortFunc(held, func(a, b HeldKey) int { return cmp.Or(cmp.Compare(a.LSN, b.LSN), cmp.Compare(a.Key, b.Key)) })
	// A record that cannot list all held keys ends before the first one that it omits. It
	// never goes back, because the keys up to the stored LSN did fit.
	room := maxHeldBytes
	for i := range held {
		if room -= held[i].size(); room < 0 && held[i].LSN > min(stored, lsn) {
			held, lsn = held[:i:i], min(lsn, held[i].LSN-1)
			break
		}
	}
	f.window.save(lsn)
	return Ahead{LSN: lsn, Held: held}
}

// entry returns the record of a held key. Called with mu.
func (h *heldKey) entry() HeldKey {
	e := HeldKey{Key: h.hash, LSN: h.dropped, Outlasted: h.outlasted, since: h.since, attempt: h.attempt}
	if len(h.items) > 0 {
		first := &h.items[0]
		e.LSN, e.ID, e.Refusals = first.item.LSN, first.id, first.refusals
	}
	return e
}
