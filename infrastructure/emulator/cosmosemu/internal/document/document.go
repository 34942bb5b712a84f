package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// Errors of Parse other than *SyntaxError.
var (
	ErrNotObject = errors.New("a document must be a JSON object")
	ErrNoID      = errors.New("the document has no id, or it is not a non-empty string")
	ErrTTL       = errors.New("ttl must be -1 or a whole number from 1 to 2147483647")
	ErrKeyValue  = errors.New("a partition key value must be a string, a number, a boolean or null")
)

// Document is a checked document. It aliases the text that it was parsed from.
type Document struct {
	ID  string
	TTL int32 // in seconds; -1: never expires, 0: absent
	Key epk.Key

	text  []byte // the argument of Parse
	spans []span // of the kept members, in order, each from its name to the end of its value
}

type span struct{ from, to int }

// Path is a partition key path, split at its slashes: "/a/b" is ["a" "b"].
type Path []string

// IsSystemProperty reports whether the store writes the property. A client's value for it is
// dropped.
func IsSystemProperty(name string) bool {
	switch name {
	case "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn":
		return true
	}
	return false
}

// Parse checks text and extracts the document's id, ttl and partition key at paths. Its errors
// are *SyntaxError and the ones listed above.
func Parse(text []byte, paths []Path) (*Document, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	d := &Document{text: text, Key: make(epk.Key, len(paths)), spans: make([]span, 0, 2)}
	s := &scanner{text: text}
	if s.peek() != '{' {
		if _, err := s.value(0); err != nil {
			return nil, err
		}
		return nil, ErrNotObject
	}
	dropped := false // the previous member was dropped
	err := s.object(0, func(from int, name, value []byte) error {
		if isEscaped(name) {
			name = []byte(strconv.Quote(Unquote(name)))
		}
		if IsSystemProperty(string(name[1 : len(name)-1])) {
			dropped = true
			return nil
		}
		if last := len(d.spans) - 1; last >= 0 && !dropped {
			d.spans[last].to = s.at
		} else {
			d.spans = append(d.spans, span{from, s.at})
		}
		dropped = false
		return d.member(name, value, paths)
	})
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	if d.ID == "" {
		return nil, ErrNoID
	}
	return d, nil
}

// member extracts the values that the store needs from one top-level member.
func (d *Document) member(name, value []byte, paths []Path) error {
	switch string(name) {
	case `"id"`:
		d.ID = ""
		if value[0] == '"' {
			d.ID = Unquote(value)
		}
	case `"ttl"`:
		ttl, err := parseTTL(value)
		if err != nil {
			return err
		}
		d.TTL = ttl
	}
	for i, path := range paths {
		if len(name)-2 == len(path[0]) && string(name[1:len(name)-1]) == path[0] {
			v, err := keyValue(value, path[1:])
			if err != nil {
				return err
			}
			d.Key[i] = v
		}
	}
	return nil
}

func isEscaped(name []byte) bool {
	for _, c := range name {
		if c == '\\' {
			return true
		}
	}
	return false
}

func parseTTL(value []byte) (int32, error) {
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n != math.Trunc(n) || n == 0 || n < -1 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%w, not %s", ErrTTL, value)
	}
	return int32(n), nil
}

// keyValue returns the scalar at path below value; undefined if there is none.
func keyValue(value []byte, path Path) (epk.Value, error) {
	for _, name := range path {
		var found bool
		value, found = Member(value, name)
		if !found {
			return epk.Undefined(), nil
		}
	}
	switch value[0] {
	case '"':
		return epk.String(Unquote(value)), nil
	case 't', 'f':
		return epk.Bool(value[0] == 't'), nil
	case 'n':
		return epk.Null(), nil
	case '{', '[':
		return epk.Value{}, ErrKeyValue
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return epk.Value{}, fmt.Errorf("%w: %s is out of range", ErrKeyValue, value)
	}
	return epk.Number(f), nil
}

// Member returns the bytes of a member of an object. The text must be valid JSON. Of equal names
// the last is used.
func Member(object []byte, name string) (value []byte, found bool) {
	s := &scanner{text: object}
	if s.peek() != '{' {
		return nil, false
	}
	_ = s.object(0, func(_ int, n, v []byte) error { // valid text has no errors
		if Unquote(n) == name {
			value, found = v, true
		}
		return nil
	})
	return value, found
}

// Canonical returns a form of the value at path that is the same for equal scalars: numbers by
// value, strings without escapes. A missing value is null. Objects and arrays keep their
// spelling.
func Canonical(object []byte, path Path) []byte {
	value := object
	for _, name := range path {
		var found bool
		if value, found = Member(value, name); !found {
			return epk.Key{epk.Null()}.Encode(nil)
		}
	}
	v, err := keyValue(value, nil)
	if err != nil {
		return value
	}
	return epk.Key{v}.Encode(nil)
}

// Unquote decodes a JSON string literal that is known to be valid.
func Unquote(literal []byte) string {
	if !isEscaped(literal) {
		return string(literal[1 : len(literal)-1])
	}
	var s string
	_ = json.Unmarshal(literal, &s) // the scanner has checked the literal
	return s
}

// AppendMembers appends the document without its system properties and without its closing
// brace: `{"id":"a","n":1`. There is always at least one member.
func (d *Document) AppendMembers(dst []byte) []byte {
	for i, sp := range d.spans {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, d.text[sp.from:sp.to]...)
	}
	return dst
}

// Size returns the length of the text given to Parse.
func (d *Document) Size() int { return len(d.text) }

// Members returns the unchanged members of an object for which keep returns true, without
// braces and separated by commas.
func Members(text []byte, keep func(name string, value []byte) bool) ([]byte, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	s := &scanner{text: text}
	if s.peek() != '{' {
		return nil, ErrNotObject
	}
	var out []byte
	err := s.object(0, func(from int, name, value []byte) error {
		if keep(Unquote(name), value) {
			if len(out) > 0 {
				out = append(out, ',')
			}
			out = append(out, s.text[from:s.at]...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, s.end()
}

// Elements calls fn for every element of an array, until fn fails.
func Elements(text []byte, fn func(element []byte) error) error {
	s := &scanner{text: text}
	if s.peek() != '[' {
		return s.fail("an array is expected")
	}
	if err := s.array(0, fn); err != nil {
		return err
	}
	return s.end()
}

// EachMember calls fn for every member of an object, until fn fails.
func EachMember(text []byte, fn func(name string, value []byte) error) error {
	s := &scanner{text: text}
	if s.peek() != '{' {
		return ErrNotObject
	}
	if err := s.object(0, func(_ int, name, value []byte) error { return fn(Unquote(name), value) }); err != nil {
		return err
	}
	return s.end()
}

// Objects walks an array of objects in one pass. It calls start for every object and member for
// every member of it. Names are passed without quotes, but with their escapes.
func Objects(text []byte, start func(), member func(name, value []byte) error) error {
	s := &scanner{text: text}
	if s.peek() != '[' {
		return s.fail("an array is expected")
	}
	s.at++
	for first := true; ; first = false {
		switch c := s.peek(); {
		case c == ']' && first:
			s.at++
			return s.end()
		case c != '{':
			return s.fail("an object is expected")
		}
		start()
		err := s.object(1, func(_ int, name, value []byte) error { return member(name[1:len(name)-1], value) })
		if err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return s.end()
		default:
			return s.fail("a comma or ] is expected")
		}
	}
}
