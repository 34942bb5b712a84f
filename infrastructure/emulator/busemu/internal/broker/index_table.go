package broker

import (
	"iter"
	"math/bits"
)

// table has the chunks of one partition, in an array because numbers are dense. Empty chunks
// at its start are dropped.
type table struct {
	chunks []*chunk
	base   int64 // number of chunks[0]
}

// at returns a chunk by its number, nil if there is none.
func (t *table) at(number int64) *chunk {
	i := number - t.base
	if i < 0 || i >= int64(len(t.chunks)) {
		return nil
	}
	return t.chunks[i]
}

// slot returns the place of a chunk, extending the table if necessary.
func (t *table) slot(number int64) **chunk {
	switch {
	case len(t.chunks) == 0:
		t.base = number
	case number < t.base: // rare: this message was overtaken by a later one
		t.chunks = append(make([]*chunk, t.base-number), t.chunks...)
		t.base = number
	}
	for number-t.base >= int64(len(t.chunks)) {
		t.chunks = append(t.chunks, nil)
	}
	return &t.chunks[number-t.base]
}

// drop removes a chunk.
func (t *table) drop(number int64) {
	t.chunks[number-t.base] = nil
	for len(t.chunks) > 0 && t.chunks[0] == nil {
		t.chunks = t.chunks[1:]
		t.base++
	}
	if len(t.chunks) == 0 {
		t.chunks = nil
	}
}

// from yields the partition's messages from a sequence number on, in order; nil for a swapped
// out one. No message may be added or removed meanwhile.
func (t *table) from(sequence int64) iter.Seq2[int64, *message] {
	return func(yield func(int64, *message) bool) {
		for i := max(0, sequence>>chunkBits-t.base); i < int64(len(t.chunks)); i++ {
			c := t.chunks[i]
			if c == nil {
				continue
			}
			for rest := c.inMemory | c.swapped; rest != 0; rest &= rest - 1 {
				slot := bits.TrailingZeros64(rest)
				at := c.first + int64(slot)
				var m *message
				if c.inMemory&(1<<slot) != 0 {
					m = c.slots[slot]
				}
				if at >= sequence && !yield(at, m) {
					return
				}
			}
		}
	}
}
