package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

var (
	errNotText    = errors.New("is not a string")
	errNotInteger = errors.New("is not a whole number")
	errNotBoolean = errors.New("is not a boolean")
	// ErrNotUTF8 reports a text in another encoding.
	ErrNotUTF8 = errors.New("is not valid UTF-8")
)

// Object calls each for every member of an object. each must consume the member's value. Null is
// an object without members.
func (s *Scanner) Object(each func(member string) error) error {
	if s.takeNull() {
		return nil
	}
	more, err := s.Enter()
	for more && err == nil {
		var member string
		if member, err = s.Member(); err != nil {
			break
		}
		if err = each(member); err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		more, err = s.Next()
	}
	return err
}

// Raw consumes a value of any kind and returns its bytes.
func (s *Scanner) Raw() (json.RawMessage, error) {
	s.Peek()
	start := s.pos
	err := s.Skip()
	return s.buf[start:s.pos:s.pos], err
}

// RequireText consumes a string; null is the empty string.
func (s *Scanner) RequireText() (string, error) {
	if s.takeNull() {
		return "", nil
	}
	text, ok, err := s.Text()
	if err == nil && !ok {
		err = errNotText
	}
	return text, err
}

// RequireInteger consumes a whole number; null is 0.
func (s *Scanner) RequireInteger() (int64, error) {
	if s.takeNull() {
		return 0, nil
	}
	n, ok, err := s.Integer()
	if err == nil && !ok {
		err = errNotInteger
	}
	return n, err
}

// RequireBoolean consumes true or false; null is false.
func (s *Scanner) RequireBoolean() (bool, error) {
	raw, err := s.Raw()
	switch {
	case err != nil:
		return false, err
	case string(raw) == "true":
		return true, nil
	case string(raw) == "false", string(raw) == "null":
		return false, nil
	default:
		return false, errNotBoolean
	}
}

// RequireTime consumes a time (RFC 3339); null is the zero time.
func (s *Scanner) RequireTime() (at time.Time, err error) {
	text, err := s.RequireText()
	if err != nil || text == "" {
		return at, err
	}
	err = at.UnmarshalText([]byte(text))
	return at, err
}

// RequireUUID consumes a UUID; null is the zero UUID.
func (s *Scanner) RequireUUID() (uuid.UUID, error) {
	text, err := s.RequireText()
	if err != nil || text == "" {
		return uuid.Nil, err
	}
	return uuid.Parse(text)
}

func (s *Scanner) takeNull() bool {
	if s.Peek() != 'n' || len(s.buf)-s.pos < 4 || string(s.buf[s.pos:s.pos+4]) != "null" {
		return false
	}
	s.pos += 4
	return true
}
