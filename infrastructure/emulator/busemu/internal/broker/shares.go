package broker

import "sync"

// shares counts, for each payload of an inlet that has a record of its own, the messages
// that refer to it: two bytes a payload. The messages themselves may be swapped out.
type shares struct {
	mu     sync.Mutex
	chunks map[int64]*shareChunk // by sequence number of the payload
}

type shareChunk struct {
	counts [1 << chunkBits]uint16
	n      int // counts that are not zero
}

// add changes a payload's count and returns what it is now.
func (s *shares) add(sequence int64, by int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chunks == nil {
		s.chunks = make(map[int64]*shareChunk)
	}
	c := s.chunks[sequence>>chunkBits]
	if c == nil {
		c = new(shareChunk)
		s.chunks[sequence>>chunkBits] = c
	}
	count := &c.counts[sequence&chunkMask]
	if *count == 0 {
		c.n++
	}
	*count += uint16(by)
	if *count == 0 {
		if c.n--; c.n == 0 {
			s.drop(sequence >> chunkBits)
		}
	}
	return int(*count)
}

func (s *shares) drop(chunk int64) {
	delete(s.chunks, chunk)
	if len(s.chunks) == 0 {
		s.chunks = nil // a map never shrinks
	}
}

// known reports whether a payload has a count.
func (s *shares) known(sequence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chunks[sequence>>chunkBits]
	return c != nil && c.counts[sequence&chunkMask] > 0
}

// retain adds references to a body.
func (b *body) retain(n int) {
	if b.shared && b.owner.b.store != nil {
		b.owner.shares.add(b.sequence, n)
		return
	}
	b.refs.Add(int32(n))
}

// release drops one reference. With the last one the payload's own record goes, if it
// has one.
func (b *body) release(w *writer) {
	if b.shared && w != nil {
		if b.owner.shares.add(b.sequence, -1) > 0 {
			return
		}
		w.deletePayload(b.owner, b.sequence)
	} else if b.refs.Add(-1) > 0 {
		return
	}
	b.owner.size.Add(-int64(len(b.payload)))
}
