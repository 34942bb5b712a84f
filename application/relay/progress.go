package relay

import (
	"strings"
	"sync"
)

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

// failing remembers the progress of the keys whose event failed. A gate that is closed then
// knows what is not to be parked when the feed shows it again, also if the event that
// failed does not tell its sequence.
type failing struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]Progress
}

// failingLimit bounds the keys remembered. What is forgotten is parked once more.
const failingLimit = 10_000

// note takes the result of a page into account.
func (f *failing) note(p *page, anyFailed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !anyFailed && len(f.byKey) == 0 {
		return
	}
	for i := range p.keys {
		k := &p.keys[i]
		_, known := f.byKey[k.name]
		switch {
		case k.parked || k.sent == len(k.messages):
			delete(f.byKey, k.name)
		case k.sent > 0:
			last := &k.messages[k.sent-1]
			f.set(k.name, Progress{Sequence: last.Sequence, LSN: last.LSN})
		case !known && k.before > 0:
			f.set(k.name, Progress{Sequence: k.before, LSN: k.messages[0].LSN - 1})
		}
	}
}

// set remembers the progress of a key. mu is held.
func (f *failing) set(key string, progress Progress) {
	if f.byKey == nil || len(f.byKey) >= failingLimit {
		f.byKey = make(map[string]Progress)
	}
	f.byKey[strings.Clone(key)] = progress
}

// progress returns how far the key of m had come when m failed.
func (f *failing) progress(m *Message) Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byKey[m.Key]; known.Sequence > 0 {
		return known
	}
	// The other events of m's transaction are left out: the feed shows them in any order,
	// so one with a lower sequence may still be to come.
	if m.Sequence == 0 || m.LSN == 0 {
		return Progress{}
	}
	return Progress{Sequence: m.Sequence - 1, LSN: m.LSN - 1}
}
