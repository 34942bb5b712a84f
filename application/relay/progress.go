package relay

import "cmp"

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
