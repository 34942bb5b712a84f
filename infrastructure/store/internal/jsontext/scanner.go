package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unsafe"
)

var (
	errNotObject = errors.New("is not a JSON object")
	errTruncated = errors.New("ends inside a JSON value")
	// ErrMalformed reports a text that is not JSON.
	ErrMalformed = errors.New("is not valid JSON")
)

// Scanner scans a JSON text without decoding it. It checks only as much as it needs to find the
// next token. It allocates nothing except for strings with escapes, and uses no stack for nested
// values.
type Scanner struct {
	buf []byte
	pos int
}

// NewScanner returns a scanner at the start of text. The strings it returns share the memory of
// text.
func NewScanner(text []byte) Scanner { return Scanner{buf: text} }

// Pos returns the position of the scanner, for Since.
func (s *Scanner) Pos() int { return s.pos }

// Since returns the text between pos and the current position.
func (s *Scanner) Since(pos int) []byte { return s.buf[pos:s.pos:s.pos] }

// Peek returns the first byte of the next token without consuming it; 0 at the end.
func (s *Scanner) Peek() byte {
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// Enter consumes the opening brace of an object and reports whether it has members.
func (s *Scanner) Enter() (bool, error) {
	if s.Peek() != '{' {
		return false, errNotObject
	}
	s.pos++
	if s.Peek() == '}' {
		s.pos++
		return false, nil
	}
	return true, nil
}

// Member consumes the name of a member and the colon.
func (s *Scanner) Member() (string, error) {
	if s.Peek() != '"' {
		return "", s.unexpected()
	}
	name, _, err := s.Text()
	if err != nil {
		return "", err
	}
	if s.Peek() != ':' {
		return "", s.unexpected()
	}
	s.pos++
	s.Peek()
	return name, nil
}

// Next consumes the comma or brace after a member's value and reports whether another member
// follows.
func (s *Scanner) Next() (bool, error) {
	switch s.Peek() {
	case ',':
		s.pos++
		return true, nil
	case '}':
		s.pos++
		return false, nil
	}
	return false, s.unexpected()
}

// unexpected returns errTruncated at the end of the text, ErrMalformed elsewhere.
func (s *Scanner) unexpected() error {
	if s.pos >= len(s.buf) {
		return errTruncated
	}
	return ErrMalformed
}

// Text consumes a value and returns it if it is a string; the second result reports whether it
// is. The string shares the memory of the scanned text.
func (s *Scanner) Text() (string, bool, error) {
	if s.Peek() != '"' {
		return "", false, s.Skip()
	}
	start := s.pos
	if err := s.skipString(); err != nil {
		return "", false, err
	}
	quoted := s.buf[start+1 : s.pos-1]
	if bytes.IndexByte(quoted, '\\') >= 0 {
		if v, ok := unescape(quoted); ok {
			return v, true, nil
		}
		var v string
		if json.Unmarshal(s.buf[start:s.pos], &v) != nil {
			return "", false, ErrMalformed
		}
		return v, true, nil
	}
	return unsafe.String(unsafe.SliceData(quoted), len(quoted)), true, nil
}

// unescape resolves escapes of one character, such as the quotes of an ETag. It leaves other
// escapes to encoding/json.
func unescape(quoted []byte) (string, bool) {
	text := make([]byte, 0, len(quoted))
	for i := 0; i < len(quoted); i++ {
		if quoted[i] == '\\' {
			i++ // a string does not end in an escape that is open
			if quoted[i] != '"' && quoted[i] != '\\' && quoted[i] != '/' {
				return "", false
			}
		}
		text = append(text, quoted[i])
	}
	return string(text), true
}

// Integer consumes a value and returns it if it is a whole number of 64 bits; the second result
// reports whether it is.
func (s *Scanner) Integer() (int64, bool, error) {
	s.Peek()
	start := s.pos
	if err := s.Skip(); err != nil {
		return 0, false, err
	}
	token := s.buf[start:s.pos]
	n, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(token), len(token)), 10, 64)
	if err != nil {
		return 0, false, nil //nolint:nilerr // not a whole number: the second result reports it
	}
	return n, true, nil
}

// Skip consumes a value of any kind.
func (s *Scanner) Skip() error {
	switch s.Peek() {
	case '"':
		return s.skipString()
	case '{', '[':
		return s.skipNested()
	}
	start := s.pos
	for s.pos < len(s.buf) && !endsLiteral(s.buf[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return s.unexpected()
	}
	return nil
}

// endsLiteral reports whether c cannot be part of a number, true, false or null.
func endsLiteral(c byte) bool {
	switch c {
	case ',', '}', ']', ':', '"', '{', '[', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

func (s *Scanner) skipNested() error {
	depth := 0
	for s.pos < len(s.buf) {
		switch s.buf[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return nil
			}
		}
		s.pos++
	}
	return errTruncated
}

func (s *Scanner) skipString() error {
	start := s.pos + 1
	for at := start; ; {
		n := bytes.IndexByte(s.buf[at:], '"')
		if n < 0 {
			s.pos = len(s.buf)
			return errTruncated
		}
		at += n + 1
		backslashes := 0
		for at-2-backslashes >= start && s.buf[at-2-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			s.pos = at
			return nil
		}
	}
}
