package broker

import (
	"crypto/sha256"
	"time"
)

// idHash stands for a message id. 128 bits of SHA-256: with 36 million ids in a window
// two different ones meet with a probability below 10^-22.
type idHash [16]byte

// hash is what duplicate detection compares: the message id, on partitioned entities
// with the key of the partition. Zero without a message id.
func (in *inlet) hash(m *Message) (h idHash) {
	if m.MessageID == "" {
		return h
	}
	text := make([]byte, 0, 160)
	text = append(text, m.MessageID...)
	if in.partitioned {
		text = append(text, 0)
		text = append(text, in.partitionKey(m)...)
	}
	sum := sha256.Sum256(text)
	copy(h[:], sum[:])
	return h
}

// history is the ids an inlet has seen within its window. The window of an id starts
// with its first copy; later copies do not move it. About 50 bytes an id.
type history struct {
	window int64
	seen   map[idHash]struct{}
	// order is what seen holds, oldest first, in groups of equal time.
	order []firstSeen
	swept int64 // records up to here have been deleted from the store
}

// firstSeen is the ids first seen in one batch.
type firstSeen struct {
	at     int64
	hashes []idHash
}

func newHistory(window time.Duration) *history {
	return &history{window: int64(window), seen: make(map[idHash]struct{})}
}

// add remembers an id, or reports false if it was seen less than a window ago. note
// must follow when all ids of a batch were added.
func (h *history) add(id idHash) bool {
	if _, dup := h.seen[id]; dup {
		return false
	}
	h.seen[id] = struct{}{}
	return true
}

// note keeps the ids that were added at a time, for forget. It keeps the slice.
func (h *history) note(at int64, added []idHash) {
	if len(added) > 0 {
		h.order = append(h.order, firstSeen{at, added})
	}
}

// forget drops ids whose window has passed.
func (h *history) forget(now int64) {
	n := 0
	for n < len(h.order) && now-h.order[n].at >= h.window {
		n++
	}
	if n == 0 {
		return
	}
	if n == len(h.order) {
		h.order, h.seen = nil, make(map[idHash]struct{})
		return
	}
	for _, s := range h.order[:n] {
		for _, id := range s.hashes {
			delete(h.seen, id)
		}
	}
	clear(h.order[:n])
	h.order = h.order[n:]
}

// armHistory sees to it that the ids of an idle entity are forgotten too. Called with
// in.mu.
func (in *inlet) armHistory() {
	if in.history == nil || len(in.history.order) == 0 || in.sweepArmed {
		return
	}
	in.sweepArmed = true
	in.b.timers.set(&in.sweep, in.history.order[0].at+in.history.window+max(in.history.window/8, int64(time.Second)))
}

// fireSweep forgets old ids, in memory and in the store.
func (in *inlet) fireSweep(now int64) {
	var later callbacks
	in.mu.Lock()
	in.sweepArmed = false
	if !in.gone && in.history != nil {
		in.history.forget(now)
		if id, until := in.rest.id, now-in.history.window; until > in.history.swept {
			in.history.swept = until
			in.b.submit(&waiting{records: func(w *writer) { w.deleteHistory(id, until) }}, &later)
		}
		in.armHistory()
	}
	in.mu.Unlock()
	later.run()
}
