package document

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth limits the nesting. It is the service's documented limit.
const MaxDepth = 128

// SyntaxError is the position at which a text stops being valid JSON.
type SyntaxError struct {
	Offset int // in bytes, from 0
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at offset %d: %s", e.Offset, e.Reason)
}

// scanner walks a JSON text (RFC 8259) without decoding it.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) fail(reason string) error { return &SyntaxError{Offset: s.at, Reason: reason} }

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// end reports an error unless only white space is left.
func (s *scanner) end() error {
	if s.space(); s.at < len(s.text) {
		return s.fail("the text goes on after the value")
	}
	return nil
}

// value skips one value and returns its bytes.
func (s *scanner) value(depth int) ([]byte, error) {
	c := s.peek()
	start := s.at
	var err error
	switch {
	case c == '"':
		_, err = s.str()
	case c == '{':
		err = s.object(depth, nil)
	case c == '[':
		err = s.array(depth, nil)
	case c == 't':
		err = s.word("true")
	case c == 'f':
		err = s.word("false")
	case c == 'n':
		err = s.word("null")
	case c == '-' || '0' <= c && c <= '9':
		err = s.number()
	default:
		err = s.fail("a value is expected")
	}
	return s.text[start:s.at], err
}

func (s *scanner) word(w string) error {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return s.fail("a value is expected")
	}
	s.at += len(w)
	return nil
}

// str skips a string and returns it with its quotes.
func (s *scanner) str() ([]byte, error) {
	start := s.at
	for i := start + 1; ; i++ {
		if i += plainLength(s.text[i:]); i >= len(s.text) {
			break
		}
		switch s.text[i] {
		case '"':
			s.at = i + 1
			return s.text[start:s.at], nil
		case '\\':
			n := escapeLength(s.text[i:])
			if n == 0 {
				s.at = i
				return nil, s.fail("unknown escape")
			}
			i += n - 1
		default:
			s.at = i
			return nil, s.fail("a control character must be escaped")
		}
	}
	s.at = len(s.text)
	return nil, s.fail("a string is not closed")
}

// plainLength returns the number of bytes before the first quote, backslash or control
// character. It reads eight bytes at a time: the lowest zero byte of x is the lowest byte whose
// top bit is set in (x - 0x01..01) &^ x.
func plainLength(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := w^ones*'"', w^ones*'\\'
		hit := ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-ones*' ')&^w) & tops
		if hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return n
}

func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

func (s *scanner) number() error {
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return s.fail("a digit is expected")
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return s.fail("a digit is expected")
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if !s.digits() {
			return s.fail("a digit is expected")
		}
	}
	return nil
}

// object skips an object. each, if not nil, is called for every member with its start, quoted
// name and value. The member ends at the current position of s.
func (s *scanner) object(depth int, each func(from int, name, value []byte) error) error {
	if depth >= MaxDepth {
		return s.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("a member name is expected")
		}
		from := s.at
		name, err := s.str()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.fail("a colon is expected")
		}
		s.at++
		value, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		if each != nil {
			if err := each(from, name, value); err != nil {
				return err
			}
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.fail("a comma or } is expected")
		}
	}
}

// array skips an array. each, if not nil, is called for every element.
func (s *scanner) array(depth int, each func(element []byte) error) error {
	if depth >= MaxDepth {
		return s.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.at++
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		element, err := s.value(depth + 1)
		if err == nil && each != nil {
			err = each(element)
		}
		if err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.fail("a comma or ] is expected")
		}
	}
}

// checkText refuses bytes that are not UTF-8.
func checkText(text []byte) error {
	if utf8.Valid(text) {
		return nil
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return &SyntaxError{Offset: i, Reason: "not UTF-8"}
		}
		i += n
	}
	return nil
}
