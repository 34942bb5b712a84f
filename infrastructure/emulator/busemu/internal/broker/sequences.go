package broker

import (
	"encoding/binary"
)

// sequences is a queue of rising sequence numbers, each stored as its distance to the
// one before: a byte or two. The zero value is empty.
type sequences struct {
	first, last int64 // 0 = empty
	rest        []byte
}

// push adds a number; false: it is not above the last one.
func (s *sequences) push(n int64) bool {
	switch {
	case s.first == 0:
		s.first = n
	case n <= s.last:
		return false
	default:
		s.rest = binary.AppendUvarint(s.rest, uint64(n-s.last))
	}
	s.last = n
	return true
}

// pop takes the first number out; 0 if there is none.
func (s *sequences) pop() int64 {
	n := s.first
	if len(s.rest) == 0 {
		*s = sequences{}
		return n
	}
	step, size := binary.Uvarint(s.rest)
	s.first += int64(step)
	s.rest = s.rest[size:]
	return n
}
