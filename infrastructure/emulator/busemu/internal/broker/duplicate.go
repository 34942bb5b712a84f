package broker

import (
	"crypto/sha256"
	"maps"
	"time"
)

// hash is what duplicate detection compares: the message id, on partitioned entities
// with the key of the partition. Zero without a message id.
func (in *inlet) hash(m *Message) (h idHash) {
	if m.MessageID == "" {
		return h
	}
	text := make([]byte, 0, 160)
	text = append(text, m.MessageID...)
	if in.partitioned {
		key, _ := in.partitionKey(m)
		text = append(append(text, 0), key...)
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
	most   int // ids that seen has held since it was made
	// order is what seen holds, oldest first, in blocks; head of the first block are
	// forgotten. batches says when they were first seen.
	order   [][]idHash
	head    int
	batches []firstSeen
	swept   int64 // records up to here have been deleted from the store
}

// historyBlock is the ids in a full block of history.order: 16 KB.
const historyBlock = 1024

// firstSeen says that the next n ids were first seen at a time.
type firstSeen struct {
	at int64
	n  int
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
	h.most = max(h.most, len(h.seen))
	last := len(h.order) - 1
	if last < 0 || len(h.order[last]) == historyBlock {
		var block []idHash // the first one grows with what comes
		if last >= 0 {
			block = make([]idHash, 0, historyBlock)
		}
		h.order = append(h.order, block)
		last++
	}
	h.order[last] = append(h.order[last], id)
	return true
}

// note says when the last n ids were added, for forget.
func (h *history) note(at int64, n int) {
	if n > 0 {
		h.batches = append(h.batches, firstSeen{at, n})
	}
}

// forget drops ids whose window has passed.
func (h *history) forget(now int64) {
	passed, ids := 0, 0
	for passed < len(h.batches) && now-h.batches[passed].at >= h.window {
		ids += h.batches[passed].n
		passed++
	}
	switch {
	case passed == 0:
	case passed == len(h.batches):
		h.seen, h.most, h.order, h.head, h.batches = make(map[idHash]struct{}), 0, nil, 0, nil
	default:
		h.batches = h.batches[passed:]
		h.drop(ids)
	}
}

// drop forgets the oldest n ids, not all of them.
func (h *history) drop(n int) {
	for ; n > 0; n-- {
		delete(h.seen, h.order[0][h.head])
		if h.head++; h.head == historyBlock {
			h.order[0] = nil
			h.order, h.head = h.order[1:], 0
		}
	}
	if h.most < 4*historyBlock || len(h.seen) > h.most/4 {
		return
	}
	h.seen = maps.Clone(h.seen) // a map never shrinks
	h.most = len(h.seen)
}

// armHistory sees to it that the ids of an idle entity are forgotten too. Called with
// in.mu.
func (in *inlet) armHistory() {
	if in.history == nil || len(in.history.batches) == 0 || in.sweepArmed {
		return
	}
	in.sweepArmed = true
	in.e.timers.set(&in.sweep, in.history.batches[0].at+in.history.window+max(in.history.window/8, int64(time.Second)))
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
			in.e.submit(&waiting{records: func(w *writer) { w.deleteHistory(id, until) }}, &later)
		}
		in.armHistory()
	}
	in.mu.Unlock()
	later.run()
}
