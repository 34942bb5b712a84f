package broker

import "iter"

const chunkBits = 6

// chunk holds the messages of 64 neighbouring sequence numbers.
type chunk struct {
	slots [1 << chunkBits]*message
	n     int
}

// index finds messages by sequence number and walks them in order. Numbers are
// dense, so it is an array in chunks; empty chunks are dropped.
type index struct {
	chunks []*chunk
	base   int64 // number of chunks[0]
	n      int
	bytes  int64 // of payload
	spare  *chunk
}

func (x *index) set(m *message) {
	c := m.sequence >> chunkBits
	switch {
	case len(x.chunks) == 0:
		x.base = c
	case c < x.base: // rare: a message overtaken on its way here
		x.chunks = append(make([]*chunk, x.base-c), x.chunks...)
		x.base = c
	}
	for c-x.base >= int64(len(x.chunks)) {
		x.chunks = append(x.chunks, nil)
	}
	at := &x.chunks[c-x.base]
	if *at == nil {
		if *at, x.spare = x.spare, nil; *at == nil {
			*at = new(chunk)
		}
	}
	(*at).slots[m.sequence&(1<<chunkBits-1)] = m
	(*at).n++
	x.n++
	x.bytes += int64(len(m.body.payload))
}

func (x *index) get(sequence int64) *message {
	i := sequence>>chunkBits - x.base
	if i < 0 || i >= int64(len(x.chunks)) || x.chunks[i] == nil {
		return nil
	}
	return x.chunks[i].slots[sequence&(1<<chunkBits-1)]
}

// remove takes m, which is in the index, out of it.
func (x *index) remove(m *message) {
	i := m.sequence>>chunkBits - x.base
	c := x.chunks[i]
	c.slots[m.sequence&(1<<chunkBits-1)] = nil
	c.n--
	x.n--
	x.bytes -= int64(len(m.body.payload))
	if c.n > 0 {
		return
	}
	x.spare, x.chunks[i] = c, nil
	for len(x.chunks) > 0 && x.chunks[0] == nil {
		x.chunks = x.chunks[1:]
		x.base++
	}
	if len(x.chunks) == 0 {
		x.chunks = nil
	}
}

// from yields the messages with at least the given sequence number, in order. The
// index must not be changed meanwhile.
func (x *index) from(sequence int64) iter.Seq[*message] {
	return func(yield func(*message) bool) {
		for i := max(0, sequence>>chunkBits-x.base); i < int64(len(x.chunks)); i++ {
			c := x.chunks[i]
			if c == nil {
				continue
			}
			for _, m := range c.slots {
				if m != nil && m.sequence >= sequence && !yield(m) {
					return
				}
			}
		}
	}
}
