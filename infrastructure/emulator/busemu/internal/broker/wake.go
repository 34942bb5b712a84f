package broker

import (
	"container/heap"
)

// wakeHeap has the chunks with swapped out messages that expire or are due, by the first such
// time.
type wakeHeap []*chunk

// next returns the first such time, 0 if never.
func (h wakeHeap) next() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[0].wake
}

// set changes a chunk's time; 0 = never.
func (h *wakeHeap) set(c *chunk, at int64) {
	c.wake = at
	switch {
	case at == 0 && c.heapIndex > 0:
		heap.Remove(h, int(c.heapIndex)-1)
	case at != 0 && c.heapIndex > 0:
		heap.Fix(h, int(c.heapIndex)-1)
	case at != 0:
		heap.Push(h, c)
	}
}

func (h wakeHeap) Len() int { return len(h) }

func (h wakeHeap) Less(i, j int) bool { return h[i].wake < h[j].wake }

func (h wakeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = int32(i+1), int32(j+1)
}

func (h *wakeHeap) Push(x any) {
	c := x.(*chunk)
	*h = append(*h, c)
	c.heapIndex = int32(len(*h))
}

func (h *wakeHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if last == 0 {
		*h = nil
	}
	c.heapIndex = 0
	return c
}
