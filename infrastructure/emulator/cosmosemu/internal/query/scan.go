package query

import "bytes"

// The scanner walks over raw JSON without decoding it. It expects valid text; on anything else
// it stops early, and never reads out of bounds. Every function takes an index and returns the
// index after the consumed text.

// skipBlanks skips whitespace.
func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString skips the string that starts at b[i].
func skipString(b []byte, i int) int {
	i++
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		// The quote ends the string unless an odd number of backslashes precedes it.
		back := i
		for b[back-1] == '\\' {
			back--
		}
		i++
		if (i-1-back)%2 == 0 {
			return i
		}
	}
	return len(b)
}

// skipValue skips one value.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipContainer(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// skipContainer skips an object or array, without recursion.
func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// trim removes whitespace at both ends.
func trim(b []byte) []byte {
	b = b[skipBlanks(b, 0):]
	for n := len(b); n > 0; n-- {
		switch b[n-1] {
		case ' ', '\n', '\t', '\r':
		default:
			return b[:n]
		}
	}
	return nil
}

// items yields the elements of a raw array.
func items(raw []byte) func(yield func(Value) bool) {
	return func(yield func(Value) bool) {
		i := skipBlanks(raw, 1)
		for i < len(raw) && raw[i] != ']' {
			end := skipValue(raw, i)
			if end == i || !yield(jsonValue(raw[i:end])) {
				return
			}
			i = skipBlanks(raw, end)
			if i < len(raw) && raw[i] == ',' {
				i = skipBlanks(raw, i+1)
			}
		}
	}
}

// members yields the members of a raw object, with decoded names.
func members(raw []byte) func(yield func(key []byte, v Value) bool) {
	return func(yield func([]byte, Value) bool) {
		i := skipBlanks(raw, 1)
		for i < len(raw) && raw[i] == '"' {
			key, escapes, at := memberKey(raw, i)
			end := skipValue(raw, at)
			if end == at || !yield(plainKey(key, escapes), jsonValue(raw[at:end])) {
				return
			}
			i = skipBlanks(raw, end)
			if i < len(raw) && raw[i] == ',' {
				i = skipBlanks(raw, i+1)
			}
		}
	}
}

// memberKey reads the key that starts at b[i]. It returns its content, whether that contains
// escapes, and the index of the value.
func memberKey(b []byte, i int) (key []byte, escapes bool, value int) {
	start := i + 1
	end := start
	for end < len(b) && b[end] != '"' && b[end] != '\\' {
		end++
	}
	if end < len(b) && b[end] == '\\' {
		escapes = true
		end = skipString(b, i) - 1
	}
	value = skipBlanks(b, min(end+1, len(b)))
	if value < len(b) && b[value] == ':' {
		value = skipBlanks(b, value+1)
	}
	return b[start:end], escapes, value
}

// plainKey decodes the content of a key.
func plainKey(key []byte, escapes bool) []byte {
	if escapes {
		return unescape(key)
	}
	return key
}

// find returns the value at a step inside v; undefined if there is none.
func (v Value) find(s step) Value {
	switch {
	case s.index < 0 && v.kind == Object:
		for key, x := range members(v.raw) {
			if string(key) == s.name {
				return x
			}
		}
	case s.index >= 0 && v.kind == Array:
		n := int64(0)
		for x := range items(v.raw) {
			if n == s.index {
				return x
			}
			n++
		}
	}
	return Value{}
}
