package broker

import (
	"container/heap"
)

// messageHeap is a heap by sequence number. Each message has its index in it, for removal.
type messageHeap []*message

func (h *messageHeap) push(m *message) { heap.Push(h, m) }

func (h *messageHeap) remove(m *message) { heap.Remove(h, int(m.heapIndex)-1) }

func (h messageHeap) Len() int { return len(h) }

func (h messageHeap) Less(i, j int) bool { return h[i].sequence < h[j].sequence }

func (h messageHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = int32(i+1), int32(j+1)
}

func (h *messageHeap) Push(x any) {
	m := x.(*message)
	*h = append(*h, m)
	m.heapIndex = int32(len(*h))
}

func (h *messageHeap) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if last == 0 {
		*h = nil
	}
	m.heapIndex = 0
	return m
}

// scheduleHeap is a heap by scheduled time, then sequence number.
type scheduleHeap struct{ messageHeap }

func (h scheduleHeap) Less(i, j int) bool {
	a, b := h.messageHeap[i], h.messageHeap[j]
	if a.scheduledAt != b.scheduledAt {
		return a.scheduledAt < b.scheduledAt
	}
	return a.sequence < b.sequence
}

// expiryHeap is a heap by expiry time.
type expiryHeap []*message

func (h expiryHeap) Len() int { return len(h) }

func (h expiryHeap) Less(i, j int) bool { return h[i].expiresAt < h[j].expiresAt }

func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].expiryIndex, h[j].expiryIndex = int32(i+1), int32(j+1)
}

func (h *expiryHeap) Push(x any) {
	m := x.(*message)
	*h = append(*h, m)
	m.expiryIndex = int32(len(*h))
}

func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	m.expiryIndex = 0
	return m
}

func (h *expiryHeap) popFirst() { heap.Pop(h) }
