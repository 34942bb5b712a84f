// Package jsonscan finds members of a JSON object in its raw bytes without decoding it.
//
// A library does not replace it, because it has to find a whole value before it can look into
// it: tidwall/gjson takes twice as long and allocates (DECISIONS.md, 49).
//
// It reads documents from a database, so it trusts that they are JSON. For other input it
// finds nothing, or the wrong bytes, but never panics and never reads past the end. It
// allocates nothing and keeps nothing.
package jsonscan

import "bytes"

// Cursor walks a JSON text once, front to back. From the first invalid byte on, all its
// methods return false.
//
//	c := jsonscan.NewCursor(raw)
//	for c.Object(); c.Member(); {
//		if string(c.Name()) == "n" { use(c.Value()) } else { c.Value() }
//	}
type Cursor struct {
	raw  []byte
	at   int
	name []byte
	bad  bool
}

// NewCursor returns a cursor before the first value of raw.
func NewCursor(raw []byte) Cursor { return Cursor{raw: raw} }

// Pos returns the index of the next byte.
func (c *Cursor) Pos() int { return c.at }

// Failed reports whether the text was invalid.
func (c *Cursor) Failed() bool { return c.bad }

// Object enters the next value, which must be an object.
func (c *Cursor) Object() bool { return c.open('{') }

// Array enters the next value, which must be an array.
func (c *Cursor) Array() bool { return c.open('[') }

// Member moves to the value of the object's next member, whose name is Name. It returns
// false at the end of the object, and moves past it.
func (c *Cursor) Member() bool {
	if !c.more('{', '}') {
		return false
	}
	end := -1
	if c.at < len(c.raw) && c.raw[c.at] == '"' {
		end = stringEnd(c.raw, c.at)
	}
	if end < 0 {
		return c.fail()
	}
	c.name = c.raw[c.at+1 : end-1]
	c.at = space(c.raw, end)
	if c.at >= len(c.raw) || c.raw[c.at] != ':' {
		return c.fail()
	}
	c.at = space(c.raw, c.at+1)
	return true
}

// Name returns the name of the current member, unquoted, with its escapes.
func (c *Cursor) Name() []byte { return c.name }

// Element moves to the next element of the array. It returns false at the end of the array,
// and moves past it.
func (c *Cursor) Element() bool { return c.more('[', ']') }

// Value skips the next value and returns its bytes, nil if there is none.
func (c *Cursor) Value() []byte {
	end := -1
	if !c.bad {
		end = valueEnd(c.raw, c.at)
	}
	if end < 0 {
		c.fail()
		return nil
	}
	value := c.raw[c.at:end]
	c.at = end
	return value
}

func (c *Cursor) open(bracket byte) bool {
	c.at = space(c.raw, c.at)
	if c.bad || c.at >= len(c.raw) || c.raw[c.at] != bracket {
		return c.fail()
	}
	c.at++
	return true
}

// more moves from the position before the first member, or after a member, to the next one.
func (c *Cursor) more(opening, closing byte) bool {
	if c.bad {
		return false
	}
	first := c.raw[c.at-1] == opening
	c.at = space(c.raw, c.at)
	switch {
	case c.at >= len(c.raw):
		return c.fail()
	case c.raw[c.at] == closing:
		c.at++
		return false
	case first:
		return true
	case c.raw[c.at] != ',':
		return c.fail()
	}
	c.at = space(c.raw, c.at+1)
	return true
}

func (c *Cursor) fail() bool {
	c.bad = true
	return false
}

// Member returns the raw value of one member of the object raw, or nil.
func Member(raw []byte, name string) []byte {
	c := NewCursor(raw)
	for c.Object(); c.Member(); {
		value := c.Value()
		if string(c.Name()) == name {
			return value
		}
	}
	return nil
}

// Unquote returns the bytes of a JSON string that has no escapes, a part of
// value; ok is false for anything else.
func Unquote(value []byte) (text []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return nil, false
	}
	text = value[1 : len(value)-1]
	return text, bytes.IndexByte(text, '\\') < 0
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at i, or -1.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); {
		q := bytes.IndexByte(raw[i:], '"')
		if q < 0 {
			return -1
		}
		escapes := 0
		for b := i + q - 1; b >= i && raw[b] == '\\'; b-- {
			escapes++
		}
		i += q + 1
		if escapes%2 == 0 {
			return i
		}
	}
	return -1
}

// valueEnd returns the index after the value that starts at i, or -1.
func valueEnd(raw []byte, i int) int {
	if i >= len(raw) {
		return -1
	}
	switch raw[i] {
	case '"':
		return stringEnd(raw, i)
	case '{', '[':
		depth := 0
		for i < len(raw) {
			switch raw[i] {
			case '"':
				if i = stringEnd(raw, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(raw) && raw[i] != ',' && raw[i] != '}' && raw[i] != ']' && space(raw, i) == i {
		i++
	}
	if i == start {
		return -1
	}
	return i
}
