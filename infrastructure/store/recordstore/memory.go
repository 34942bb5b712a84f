package recordstore

import (
	"sync"

	"feedbox/changefeed"
)

// Memory is what a feed knows of its ranges from earlier reads. What it forgets is found again.
// It is safe for concurrent use.
type Memory[T any] struct {
	most int

	mu    sync.Mutex // guards known
	known map[changefeed.FeedRange]T
}

// NewMemory returns one that knows nothing, of about so many ranges at most.
func NewMemory[T any](most int) *Memory[T] {
	return &Memory[T]{most: most, known: map[changefeed.FeedRange]T{}}
}

// Take returns what is known of a range, and forgets it: one read at a time has it. It is the zero
// value where nothing is known.
func (m *Memory[T]) Take(r changefeed.FeedRange) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[r]
	delete(m.known, r)
	return known
}

// Keep keeps what is known of a range.
func (m *Memory[T]) Keep(r changefeed.FeedRange, known T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) > m.most { // ranges that were split or merged since
		clear(m.known)
	}
	m.known[r] = known
}
