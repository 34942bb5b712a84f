package broker

import (
	"encoding/binary"
)

// sequences is a queue of rising sequence numbers. Each is stored as the difference to the one
// before, which takes a byte or two. The zero value is empty.
type sequences struct {
	first, last int64 // 0 = empty
	rest        []byte
}

// push adds a number. It returns false if the number is not above the last one.
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

// pop removes the first number; 0 if there is none.
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
