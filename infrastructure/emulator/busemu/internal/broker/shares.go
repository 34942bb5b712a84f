package broker

import (
	"sync"
	"sync/atomic"
)

// ledger counts the payloads of the messages accepted by one inlet, in all of its holders.
type ledger struct {
	id      uint32       // holder whose key range has the shared payloads
	durable bool         // there is a store
	size    atomic.Int64 // bytes held, also by dead-letter queues
	shares  shares       // with storage
}

// shares counts the messages of each shared payload of an inlet, in two bytes a payload. The
// messages may be swapped out.
type shares struct {
	mu     sync.Mutex
	chunks map[int64]*shareChunk // by sequence number of the payload
}

type shareChunk struct {
	counts [1 << chunkBits]uint16
	n      int // counts that are not zero
}

// add changes a payload's count and returns the new one.
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
		s.chunks = nil // a map never shrinks, so a new one will be made
	}
}

// known reports whether a payload has a count.
func (s *shares) known(sequence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chunks[sequence>>chunkBits]
	return c != nil && c.counts[sequence&chunkMask] > 0
}
