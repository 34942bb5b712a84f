package cosmos

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
	errNotUTF8    = errors.New("is not valid UTF-8")
)

// object walks over the members of an object. Each is called at the first byte of a
// member's value, which it has to take. Null is an object without members.
func (s *jsonScanner) object(each func(member string) error) error {
	if s.takeNull() {
		return nil
	}
	more, err := s.enter()
	for more && err == nil {
		var member string
		if member, err = s.member(); err != nil {
			break
		}
		if err = each(member); err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		more, err = s.next()
	}
	return err
}

// raw takes a value of any kind and returns it as it stands.
func (s *jsonScanner) raw() (json.RawMessage, error) {
	s.peek()
	start := s.pos
	err := s.skip()
	return s.buf[start:s.pos:s.pos], err
}

// requireText takes a string; null is the empty one.
func (s *jsonScanner) requireText() (string, error) {
	if s.takeNull() {
		return "", nil
	}
	text, ok, err := s.text()
	if err == nil && !ok {
		err = errNotText
	}
	return text, err
}

// requireInteger takes a whole number; null is 0.
func (s *jsonScanner) requireInteger() (int64, error) {
	if s.takeNull() {
		return 0, nil
	}
	n, ok, err := s.integer()
	if err == nil && !ok {
		err = errNotInteger
	}
	return n, err
}

// requireBoolean takes true or false; null is false.
func (s *jsonScanner) requireBoolean() (bool, error) {
	raw, err := s.raw()
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

// requireTime takes a time (RFC 3339); null is the zero time.
func (s *jsonScanner) requireTime() (at time.Time, err error) {
	text, err := s.requireText()
	if err != nil || text == "" {
		return at, err
	}
	err = at.UnmarshalText([]byte(text))
	return at, err
}

// requireUUID takes a UUID; null is the zero one.
func (s *jsonScanner) requireUUID() (uuid.UUID, error) {
	text, err := s.requireText()
	if err != nil || text == "" {
		return uuid.Nil, err
	}
	return uuid.Parse(text)
}

func (s *jsonScanner) takeNull() bool {
	if s.peek() != 'n' || len(s.buf)-s.pos < 4 || string(s.buf[s.pos:s.pos+4]) != "null" {
		return false
	}
	s.pos += 4
	return true
}
