package recordstore

import (
	"sync"

	"feedbox/changefeed"
)

// RangeCache keeps a value for each feed range from one read to the next. A feed must work
// without the value, too: the cache may lose it. It is safe for concurrent use.
type RangeCache[T any] struct {
	most int

	mu     sync.Mutex // guards values
	values map[changefeed.FeedRange]T
}

// NewRangeCache returns an empty cache of about most ranges.
func NewRangeCache[T any](most int) *RangeCache[T] {
	return &RangeCache[T]{most: most, values: map[changefeed.FeedRange]T{}}
}

// Take removes the value of a range and returns it, or the zero value if there is none. Two
// concurrent reads of a range therefore never share a value.
func (c *RangeCache[T]) Take(r changefeed.FeedRange) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	value := c.values[r]
	delete(c.values, r)
	return value
}

// Keep stores the value of a range.
func (c *RangeCache[T]) Keep(r changefeed.FeedRange, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.values) > c.most { // ranges that were split or merged are never read again
		clear(c.values)
	}
	c.values[r] = value
}
