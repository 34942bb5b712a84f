package broker

import (
	"crypto/sha256"
	"maps"
	"time"
)

// hash identifies a message to duplicate detection, by its message id and on partitioned
// entities also by its partition key. It is zero without a message id.
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

// history has the ids that an inlet accepted within its window. An id's window starts with its
// first copy; later copies do not extend it. An id takes about 50 bytes.
type history struct {
	window int64
	seen   map[idHash]struct{}
	most   int // highest number of ids in seen since the map was made
	// order has the ids of seen in blocks, oldest first. The first head ids of the first block
	// have been dropped. batches has the times at which ids were added.
	order   [][]idHash
	head    int
	batches []firstSeen
	swept   int64 // records up to this time were deleted from the store
}

// historyBlock is the number of ids in a full block of history.order: 16 KB.
const historyBlock = 1024

// firstSeen is the time at which the next n ids of history.order were added.
type firstSeen struct {
	at int64
	n  int
}

func newHistory(window time.Duration) *history {
	return &history{window: int64(window), seen: make(map[idHash]struct{})}
}

// add records an id. It reports false if the id was added less than a window ago. note must
// follow when all ids of a batch have been added.
func (h *history) add(id idHash) bool {
	if _, dup := h.seen[id]; dup {
		return false
	}
	h.seen[id] = struct{}{}
	h.most = max(h.most, len(h.seen))
	last := len(h.order) - 1
	if last < 0 || len(h.order[last]) == historyBlock {
		var block []idHash // the first block grows on demand, so that a quiet entity stays small
		if last >= 0 {
			block = make([]idHash, 0, historyBlock)
		}
		h.order = append(h.order, block)
		last++
	}
	h.order[last] = append(h.order[last], id)
	return true
}

// note records the time at which the last n ids were added.
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

// drop drops the oldest n ids; at least one remains.
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
	h.seen = maps.Clone(h.seen) // a map never shrinks, so a smaller one is made
	h.most = len(h.seen)
}

// armHistory sets the sweep alarm, because an idle entity must drop its ids too. Called with
// in.mu.
func (in *inlet) armHistory() {
	if in.history == nil || len(in.history.batches) == 0 || in.sweepArmed {
		return
	}
	in.sweepArmed = true
	in.e.timers.set(&in.sweep, in.history.batches[0].at+in.history.window+max(in.history.window/8, int64(time.Second)))
}

// fireSweep drops old ids from memory and from the store.
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
