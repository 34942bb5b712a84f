package document

import (
	"encoding/json"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

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
