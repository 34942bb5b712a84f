package cloudevents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ReadBatch reads a batch of 1 to limit events. Data aliases body; it is JSON if the batch is. Attributes do
// not alias body, because an inbox keeps ids and keys for long. Unknown attributes are ignored.
//
// We do not use encoding/json for the batch: it reads each byte twice, and most bytes are data, which the
// reader passes on unread.
func ReadBatch(body []byte, limit int) (events []Event, err error) {
	s := &scanner{text: body}
	if !s.take('[') {
		return nil, errors.New("the body is not a JSON array")
	}
	for {
		if len(events) == limit {
			return nil, fmt.Errorf("the batch has more than %d events", limit)
		}
		e, err := s.event()
		if err != nil {
			return nil, fmt.Errorf("event %d of the batch: %w", len(events)+1, err)
		}
		if events = append(events, e); !s.take(',') {
			break
		}
	}
	if !s.take(']') || s.peek() != 0 || s.at < len(body) {
		return nil, fmt.Errorf("after event %d of the batch: %w", len(events), errMalformed)
	}
	return events, nil
}

var errMalformed = errors.New("malformed JSON")

// scanner reads a JSON text value by value. It checks only as much as it needs to find the end of a value,
// and uses no stack for nested values.
type scanner struct {
	text []byte
	at   int
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// take consumes c if it is the next byte.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) event() (e Event, err error) {
	if !s.take('{') {
		return e, errors.New("not a JSON object")
	}
	given := ""
	for more := !s.take('}'); more; {
		name, err := s.value()
		if err != nil || !s.take(':') {
			return e, errMalformed
		}
		if name, err = unquote(name); err != nil {
			return e, err
		}
		value, err := s.value()
		if err == nil {
			err = e.set(string(name), value, &given)
		}
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
		if more = s.take(','); !more && !s.take('}') {
			return e, errMalformed
		}
	}
	if given != version || e.ID == "" || e.Type == "" {
		return e, fmt.Errorf("not an event of CloudEvents %s with id and type", version)
	}
	return e, nil
}

// set sets a member from its JSON value.
func (e *Event) set(name string, value []byte, given *string) (err error) {
	if name == "data" {
		e.Data = value
		return nil
	}
	var text *string
	var number *int64
	switch name {
	case "specversion":
		text = given
	case "id":
		text = &e.ID
	case "source":
		text = &e.Source
	case "type":
		text = &e.Type
	case "subject":
		text = &e.Subject
	case "time":
		text = &e.Time
	case "partitionkey":
		text = &e.Key
	case "resubmission":
		text = &e.Resubmission
	case "traceparent":
		text = &e.Traceparent
	case "keysequence":
		number = &e.Sequence
	case "aggregateversion":
		number = &e.AggregateVersion
	case "lsn":
		number = &e.LSN
	case "replaced":
		number = &e.Replaced
	case "data_base64":
	default:
		return nil
	}
	if string(value) == "null" { // the same as no attribute
		return nil
	}
	if number == nil || value[0] == '"' {
		if value, err = unquote(value); err != nil {
			return err
		}
	}
	switch {
	case text != nil:
		*text = string(value)
	case number != nil:
		*number, err = strconv.ParseInt(string(value), 10, 64)
	default:
		e.Data, err = base64.StdEncoding.AppendDecode([]byte{}, value)
	}
	return err
}

// unquote decodes a JSON string. The result may alias it.
func unquote(value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, errors.New("not a string")
	}
	if quoted := value[1 : len(value)-1]; bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return quoted, nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return []byte(text), err
}

// value consumes a value of any kind and returns its bytes, at least one.
func (s *scanner) value() ([]byte, error) {
	var whole bool
	kind := s.peek()
	from := s.at
	switch kind {
	case '"':
		whole = s.skipString()
	case '{', '[':
		whole = s.skipNested()
	default: // a number, true, false or null
		for s.at < len(s.text) && s.text[s.at] > ' ' && s.text[s.at] != ',' && s.text[s.at] != '}' && s.text[s.at] != ']' {
			s.at++
		}
		whole = json.Valid(s.text[from:s.at])
	}
	if !whole {
		return nil, errMalformed
	}
	return s.text[from:s.at:s.at], nil
}

// skipNested consumes an object or an array, and reports whether it ends.
func (s *scanner) skipNested() bool {
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			if !s.skipString() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.at++; depth == 0 {
			return true
		}
	}
	return false
}

// skipString consumes a string, and reports whether it ends.
func (s *scanner) skipString() bool {
	from := s.at + 1
	for at := from; ; {
		n := bytes.IndexByte(s.text[at:], '"')
		if n < 0 {
			return false
		}
		escapes := 0
		for at+n-escapes > from && s.text[at+n-1-escapes] == '\\' {
			escapes++
		}
		if at += n + 1; escapes%2 == 0 {
			s.at = at
			return true
		}
	}
}
